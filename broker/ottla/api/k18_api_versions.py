"""ApiVersions: which APIs and versions are served, and which features are supported and finalized.

v3 flexible, client software name (KIP-511) · v4 features with minimum version 0. A version above ours is answered in
the layout of v0 with UNSUPPORTED_VERSION, and the connection stays (KIP-511).
"""

import re
from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import APIS, api
from ottla.api.requests import ApiVersionsRequest
from ottla.errors import Code
from ottla.metadata.decisions.features import SUPPORTED_FEATURES
from ottla.metadata.runtime.feed import MetadataFeed

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@api(key=18, versions=(0, 4))
def api_versions(request: ApiVersionsRequest, call: Call, feed: MetadataFeed) -> Answer:
    if request is None:
        return call.reply(error_code=Code.unsupported_version, api_keys=[_range(APIS[18])])
    if call.version >= 3 and not _names_software(request):
        return call.reply(error_code=Code.invalid_request)
    if call.client.authentication is not None:
        call.client.authentication.greeted()
    image = feed.image
    return call.reply(
        api_keys=[_range(served) for _, served in sorted(APIS.items())],
        supported_features=[
            {"name": name, "min_version": low, "max_version": high}
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if call.version >= 4 or low > 0
        ],
        finalized_features_epoch=image.features_epoch,
        finalized_features=[
            {"name": name, "min_version_level": level, "max_version_level": level}
            for name, level in image.features.items()
        ],
    )


def _range(served: Any) -> dict[str, int]:
    return {"api_key": served.key, "min_version": served.advertised_from, "max_version": served.version_max}


def _names_software(request: ApiVersionsRequest) -> bool:
    return bool(
        SOFTWARE.fullmatch(request.client_software_name) and SOFTWARE.fullmatch(request.client_software_version)
    )
