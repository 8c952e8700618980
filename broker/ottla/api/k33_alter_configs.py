"""AlterConfigs: the settings of a resource become exactly these. v2 flexible."""

from ottla.api import config_changing
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import AlterConfigsRequest
from ottla.metadata.decisions.commands import AlterConfigs


@api(key=33, versions=(0, 2), elements_max=MANY_ELEMENTS_MAX)
async def alter_configs(request: AlterConfigsRequest, call: Call, controller: ControllerClient) -> Answer:
    resources = [
        ((resource.resource_type, resource.resource_name), {config.name: config.value for config in resource.configs})
        for resource in request.resources
    ]
    return await config_changing.answer(AlterConfigs(resources, validate_only=request.validate_only), call, controller)
