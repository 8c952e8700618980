"""Common parts of AlterConfigs and IncrementalAlterConfigs: only topics, brokers and groups have settings here."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ottla.api.authorizing import require_configs
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.slices import paced
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AlterConfigs, IncrementalAlterConfigs, Outcome
from ottla.metadata.model.state import ConfigResource, ResourceType
from ottla.security.core.access import Operation

__all__ = ["answer"]

Changed = tuple[ConfigResource, Any]

CHANGEABLE = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP)


async def answer(command: AlterConfigs | IncrementalAlterConfigs, call: Call, controller: ControllerClient) -> Answer:
    """Submit what the client may change, and answer line by line."""
    allowed, denied = await _by_right(command.resources, call)
    command = msgspec.structs.replace(command, resources=allowed)
    resources = [resource for resource, _ in command.resources]
    try:
        for resource_type, name in resources:
            if resource_type not in CHANGEABLE:
                raise KafkaError(
                    Code.invalid_request, f"{name}: settings of resource type {resource_type} are not served"
                )
        outcomes = await controller.submit(command)
    except KafkaError as error:
        outcomes = [Outcome(resource, error.code, error.message) for resource in resources]
    return call.reply(responses=[_line(outcome) for outcome in (*outcomes, *denied)])


async def _by_right(resources: Sequence[Changed], call: Call) -> tuple[list[Changed], list[Outcome[ConfigResource]]]:
    allowed: list[Changed] = []
    denied: dict[ConfigResource, Outcome[ConfigResource]] = {}
    async for one in paced(resources, call):
        try:
            require_configs(call, Operation.ALTER_CONFIGS, *one[0])
        except KafkaError as error:
            denied[one[0]] = Outcome(one[0], error.code, error.message)
        else:
            allowed.append(one)
    return allowed, list(denied.values())


def _line(outcome: Outcome[ConfigResource]) -> dict[str, Any]:
    resource_type, name = outcome.value
    return {
        "error_code": outcome.code,
        "error_message": outcome.message,
        "resource_type": resource_type,
        "resource_name": name,
    }
