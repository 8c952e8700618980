"""Making topics: shared by CreateTopics and by Metadata, which makes topics that clients name for the first time."""

import logging
from collections.abc import Sequence
from typing import TypeVar

from ottla.api.call import Call
from ottla.api.mutation_quota import charge_permissively
from ottla.errors import KafkaError
from ottla.metadata.commands import Command, CreateTopics, NewTopic
from ottla.metadata.topic_names import check_topic_name

__all__ = ["auto_create", "is_legal_name", "submit"]

log = logging.getLogger("ottla.api")

Reply = TypeVar("Reply")


def is_legal_name(name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True


async def submit(command: Command[Reply], call: Call) -> Reply:
    """Ask the controller, and come back when this broker has done its part of the change."""
    reply = await call.node.controller.submit(command)
    await call.node.replicas.settled()
    return reply


async def auto_create(names: Sequence[str], call: Call) -> None:
    """With the broker's defaults. What cannot be made stays unknown to the client, who will ask again."""
    try:
        outcomes = await submit(CreateTopics([NewTopic(name) for name in dict.fromkeys(names)]), call)
    except KafkaError as error:
        log.warning("topics %s were not made: %s", ", ".join(names), error)
        return
    charge_permissively(sum(outcome.value.partitions for outcome in outcomes if outcome.ok), call)
    for outcome in outcomes:
        log.info(
            "topic %s %s", outcome.value.name, "made on first use" if outcome.ok else f"not made: {outcome.message}"
        )
