"""Topic settings that the controller uses, and the rules of elections that follow from them. Pure."""

import uuid
from collections.abc import Callable

from ottla.metadata.decisions.commands import Context
from ottla.metadata.decisions.elections import Election, Rules
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import DIRECTORY_UNASSIGNED, ResourceType

__all__ = [
    "ELIGIBLE_LEADER_REPLICAS",
    "MIN_INSYNC_REPLICAS",
    "allows_unclean_election",
    "elr_enabled",
    "isr_size_min",
    "rules_of",
]

ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"


def isr_size_min(image: Image, topic: str, context: Context) -> int:
    """The setting, limited to the partition's replication factor."""
    text = _setting(image, topic, MIN_INSYNC_REPLICAS, context)
    return context.min_insync_replicas if text is None else int(text)


def allows_unclean_election(image: Image, topic: str, context: Context) -> bool:
    text = _setting(image, topic, UNCLEAN_ELECTION, context)
    return context.unclean_elections if text is None else text.strip().lower() == "true"


def elr_enabled(image: Image) -> bool:
    return image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) >= 1


def rules_of(
    image: Image,
    topic: str,
    context: Context,
    *,
    may_lead: Callable[[int], bool] | None = None,
    election: Election | None = None,
) -> Rules:
    """By default active brokers may lead, and the topic's setting allows unclean elections."""
    if election is None:
        election = Election.UNCLEAN if allows_unclean_election(image, topic, context) else Election.ONLINE
    return Rules(
        may_lead=may_lead or image.is_active,
        isr_size_min=isr_size_min(image, topic, context),
        directory_for=lambda broker_id: _directory(image, broker_id),
        elr_enabled=elr_enabled(image),
        election=election,
    )


def _setting(image: Image, topic: str, name: str, context: Context) -> str | None:
    """The value of the topic, else of this controller's node, else of the fleet."""
    places = ((ResourceType.TOPIC, topic), (ResourceType.BROKER, str(context.node_id)), (ResourceType.BROKER, ""))
    found = (image.config(*place).get(name) for place in places)
    return next((text for text in found if text is not None), None)


def _directory(image: Image, broker_id: int) -> uuid.UUID:
    broker = image.brokers.get(broker_id)
    return DIRECTORY_UNASSIGNED if broker is None else broker.directory_for_new_replica()
