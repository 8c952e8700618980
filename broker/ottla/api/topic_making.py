"""Auto-creation of topics that clients name for the first time."""

import logging
from collections.abc import Sequence

from ottla.api.call import Call
from ottla.api.controller_client import ControllerClient
from ottla.api.mutation_quota import charge_permissively
from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import CreateTopics, NewTopic
from ottla.metadata.model.topic_names import check_topic_name

__all__ = ["auto_create", "is_legal_name"]

log = logging.getLogger("ottla.api")

NAMES_LOGGED_MAX = 5


def is_legal_name(name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMES_LOGGED_MAX]) + (", …" if len(names) > NAMES_LOGGED_MAX else "")


async def auto_create(names: Sequence[str], call: Call, controller: ControllerClient) -> None:
    """Create them with the broker's defaults. Topics that cannot be created stay unknown to the client, which
    retries."""
    try:
        outcomes = await controller.submit(CreateTopics([NewTopic(name) for name in dict.fromkeys(names)]))
    except KafkaError as error:
        log.warning("%d topics (%s) were not created: %s", len(names), _some(names), error)
        return
    charge_permissively(sum(outcome.value.partitions for outcome in outcomes if outcome.ok), call)
    for outcome in outcomes:
        log.info(
            "topic %s %s",
            outcome.value.name,
            "created on first use" if outcome.ok else f"not created: {outcome.message}",
        )
