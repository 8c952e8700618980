"""Whether a broker may be restarted now. Pure.

yes        producers with acks=all are not affected
no         with the reasons, for the node and by partition: retry later
warnings   partitions without a spare replica: no order of restarts keeps them writable, so they do not block
"""

from collections.abc import Callable, Iterator, Set

import msgspec

from ottla.metadata.model.image import Image
from ottla.metadata.model.state import NO_LEADER, PartitionState, Topic

__all__ = ["PartitionReason", "Verdict", "may_restart"]


class PartitionReason(msgspec.Struct, frozen=True):
    topic: str
    index: int
    reason: str


class Verdict(msgspec.Struct, frozen=True):
    reasons: list[str] = []
    partitions: list[PartitionReason] = []
    warnings: list[PartitionReason] = []

    @property
    def yes(self) -> bool:
        return not self.reasons and not self.partitions


def may_restart(
    image: Image,
    node_id: int,
    *,
    voters: Set[int],
    voters_alive: Set[int],
    brokers_alive: Set[int],
    isr_size_min_of: Callable[[str], int],
) -> Verdict:
    """`*_alive`: nodes with a live session. `isr_size_min_of` returns min.insync.replicas of a topic."""
    reasons = [*_quorum_reasons(node_id, voters, voters_alive), *_broker_reasons(image, node_id, brokers_alive)]
    partitions: list[PartitionReason] = []
    warnings: list[PartitionReason] = []
    for topic in image.topics.values():
        wanted = isr_size_min_of(topic.name)
        for state in topic.partitions:
            if node_id not in state.replicas:
                continue
            needed = min(wanted, len(state.replicas))
            reason = _partition_reason(image, node_id, state, needed)
            if reason is not None:
                blocking = len(state.replicas) > needed
                (partitions if blocking else warnings).append(_about(topic, state, reason))
    return Verdict(reasons, partitions, warnings)


def _quorum_reasons(node_id: int, voters: Set[int], alive: Set[int]) -> Iterator[str]:
    if node_id not in voters or len(voters) == 1:
        return
    left, majority = len((alive & voters) - {node_id}), len(voters) // 2 + 1
    if left < majority:
        yield f"would lose the quorum: {left} of {len(voters)} voters would be left, {majority} are needed"


def _broker_reasons(image: Image, node_id: int, alive: Set[int]) -> Iterator[str]:
    """A broker that is down may be restarted; one that is starting should finish first."""
    broker = image.brokers.get(node_id)
    if broker is not None and broker.fenced and node_id in alive:
        yield f"broker {node_id} is still recovering: it has registered and does not serve yet"


def _partition_reason(image: Image, node_id: int, state: PartitionState, needed: int) -> str | None:
    if node_id not in state.isr:
        catching_up = image.is_active(node_id) and state.leader not in (NO_LEADER, node_id)
        return f"is still recovering: broker {node_id} is not in sync yet" if catching_up else None
    left = sum(image.is_active(each) for each in state.isr if each != node_id)
    if left >= needed:
        return None
    if left == 0:
        return f"would have no leader{_who_is_missing(image, node_id, state)}"
    return f"would go below min ISR: {left} in sync, {needed} are needed{_who_is_missing(image, node_id, state)}"


def _who_is_missing(image: Image, node_id: int, state: PartitionState) -> str:
    down = [each for each in state.replicas if each != node_id and not image.is_active(each)]
    behind = [each for each in state.replicas if each not in state.isr and each not in (*down, node_id)]
    parts = [f"broker {each} is down" for each in down] + [f"broker {each} is still recovering" for each in behind]
    return f" ({', '.join(parts)})" if parts else ""


def _about(topic: Topic, state: PartitionState, reason: str) -> PartitionReason:
    return PartitionReason(topic.name, state.index, reason)
