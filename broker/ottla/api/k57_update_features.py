"""UpdateFeatures: raise or lower finalized features (KIP-584).

v1 validate only, upgrade types · v2 no results per feature.
"""

from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import UpdateFeaturesFeatureUpdateKey, UpdateFeaturesRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import UpdateFeatures, UpgradeType


@api(key=57, versions=(0, 2))
async def update_features(request: UpdateFeaturesRequest, call: Call, controller: ControllerClient) -> Answer:
    updates = [(line.feature, line.max_version_level, _upgrade_type(line, call)) for line in request.feature_updates]
    try:
        names = await controller.submit(UpdateFeatures(updates, validate_only=request.validate_only))
    except KafkaError as error:
        return call.reply(error_code=error.code, error_message=error.message)
    results = [{"feature": name, "error_code": Code.none, "error_message": None} for name in names]
    return call.reply(error_code=Code.none, error_message=None, results=results)


def _upgrade_type(line: UpdateFeaturesFeatureUpdateKey, call: Call) -> int:
    if call.version >= 1:
        return int(line.upgrade_type)
    return UpgradeType.SAFE_DOWNGRADE if line.allow_downgrade else UpgradeType.UPGRADE
