"""Which consumer group a heartbeat is for: the one there is, a new one, or one made of a classic group. Pure."""

from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup
from ottla.group.consumer.group import ConsumerGroup, ConsumerRules
from ottla.group.consumer.heartbeat import Heartbeat, Moved
from ottla.group.consumer.migration import check_upgrade, upgrade
from ottla.group.contract.group import Group

__all__ = ["group_for"]


def group_for(request: Heartbeat, known: Group | None, rules: ConsumerRules) -> tuple[ConsumerGroup, Moved | None]:
    """A group that is not in the shard yet comes into it with the first thing written. KafkaError: no such group."""
    if isinstance(known, ConsumerGroup):
        return known, None
    group_id = request.group_id
    if not request.joins:
        reason = (
            f"Consumer group {group_id} not found." if known is None else f"Group {group_id} is not a consumer group."
        )
        raise KafkaError(Code.group_id_not_found, reason)
    group = ConsumerGroup(group_id, rules)
    if known is None:
        return group, None
    if not isinstance(known, ClassicGroup):
        raise KafkaError(Code.group_id_not_found, f"Group {group_id} is not a consumer group.")
    if known.is_empty:  # perhaps somebody was told an id here; it may join with that one
        return group, Moved(known, ())
    check_upgrade(known, policy=rules.policy(), members_max=rules.terms(group_id).members_max)
    entries = upgrade(known, rules.image())
    for entry in entries:
        group.log.apply(entry)
    return group, Moved(known, entries)
