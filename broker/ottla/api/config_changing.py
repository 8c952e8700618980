"""What both ways to alter configs share: only topics, brokers and groups have settings here."""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AlterConfigs, IncrementalAlterConfigs, Outcome
from ottla.metadata.model.state import ConfigResource, ResourceType

__all__ = ["answer"]

CHANGEABLE = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP)


async def answer(command: AlterConfigs | IncrementalAlterConfigs, call: Call, controller: ControllerClient) -> Answer:
    """Submit and answer line by line."""
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
    return call.reply(responses=[_line(outcome) for outcome in outcomes])


def _line(outcome: Outcome[ConfigResource]) -> dict[str, Any]:
    resource_type, name = outcome.value
    return {
        "error_code": outcome.code,
        "error_message": outcome.message,
        "resource_type": resource_type,
        "resource_name": name,
    }
