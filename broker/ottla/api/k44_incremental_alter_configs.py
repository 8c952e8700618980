"""IncrementalAlterConfigs: set, delete, append to or subtract from single settings (KIP-339). v1 flexible."""

from ottla.api import config_changing
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import IncrementalAlterConfigsRequest
from ottla.metadata.decisions.commands import IncrementalAlterConfigs, SettingChange


@api(key=44, versions=(0, 1), elements_max=MANY_ELEMENTS_MAX)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, call: Call, controller: ControllerClient
) -> Answer:
    resources = [
        (
            (resource.resource_type, resource.resource_name),
            [SettingChange(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    return await config_changing.answer(
        IncrementalAlterConfigs(resources, validate_only=request.validate_only), call, controller
    )
