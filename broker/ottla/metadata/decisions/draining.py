"""Drains a broker: moves its leaders before a restart, or all its replicas before it is removed. Pure.

plan = drain(image, broker_id, leaders_only=False)
submit every plan.commands; repeat for progress, which is idempotent
"""

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Any

import msgspec

from ottla.metadata.decisions.commands import AlterReassignments, Command, MoveLeadersAway, Reassignment
from ottla.metadata.decisions.reassignments import lasting_replicas
from ottla.metadata.decisions.safety import PartitionReason
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Broker, PartitionState, Topic

__all__ = ["DrainPlan", "Progress", "drain", "drain_progress"]


class DrainPlan(msgspec.Struct, frozen=True):
    commands: list[Command[Any]] = []
    moves: int = 0
    # Replicas or leaders that cannot be moved.
    stuck: list[PartitionReason] = []


class Progress(msgspec.Struct, frozen=True):
    leaders_left: int
    replicas_left: int
    moving: int


def drain_progress(image: Image, broker_id: int) -> Progress:
    states = [state for _, state in _states(image) if broker_id in state.replicas]
    return Progress(
        leaders_left=sum(state.leader == broker_id for state in states),
        replicas_left=len(states),
        moving=sum(broker_id in state.removing for state in states),
    )


def drain(image: Image, broker_id: int, *, leaders_only: bool) -> DrainPlan:
    if leaders_only:
        return _drain_leaders(image, broker_id)
    load = Counter(replica for _, state in _states(image) for replica in lasting_replicas(state))
    moves, stuck = [], []
    for topic, state in _states(image):
        replicas = lasting_replicas(state)
        if broker_id not in replicas:
            continue
        moved = _moved(image, replicas, leaving=broker_id, load=load)
        if moved is None:
            stuck.append(PartitionReason(topic.name, state.index, "every other active broker has a replica already"))
            continue
        load.update(set(moved) - set(replicas))
        moves.append(Reassignment(topic.name, state.index, moved))
    commands: list[Command[Any]] = [AlterReassignments(moves)] if moves else []
    return DrainPlan(commands, len(moves), stuck)


def _drain_leaders(image: Image, broker_id: int) -> DrainPlan:
    led = [(topic, state) for topic, state in _states(image) if state.leader == broker_id]
    stuck = [
        PartitionReason(topic.name, state.index, "no other in-sync replica is active")
        for topic, state in led
        if not any(image.is_active(each) for each in state.isr if each != broker_id)
    ]
    moves = len(led) - len(stuck)
    return DrainPlan([MoveLeadersAway(broker_id)] if moves else [], moves, stuck)


def _moved(image: Image, replicas: Sequence[int], *, leaving: int, load: Counter[int]) -> tuple[int, ...] | None:
    """The replicas with every drained or unregistered broker replaced; None if there are not enough brokers."""
    moved = [each for each in replicas if each != leaving and each in image.brokers]
    places = []
    for each in replicas:
        if each not in moved:
            successor = _successor(image, taken={*moved, leaving}, beside=moved, load=load)
            if successor is None:
                return None
            moved.append(successor)
            places.append(successor)
        else:
            places.append(each)
    return tuple(places)


def _successor(image: Image, *, taken: Set[int], beside: Sequence[int], load: Counter[int]) -> int | None:
    """Prefers a rack that the partition does not use, then the broker with the fewest replicas."""
    racks = Counter(image.brokers[each].rack for each in beside)

    def cost(broker: Broker) -> tuple[int, int, int]:
        return racks[broker.rack], load[broker.id], broker.id

    candidates = [broker for broker in image.brokers.values() if broker.is_active and broker.id not in taken]
    return min(candidates, key=cost).id if candidates else None


def _states(image: Image) -> Iterator[tuple[Topic, PartitionState]]:
    for topic in image.topics.values():
        for state in topic.partitions:
            yield topic, state
