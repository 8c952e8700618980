"""Placement of replicas on brokers. Pure.

Guarantees:
- the first replica (the preferred leader) is an active broker, and leaders are balanced: counts differ by at most one;
- a fenced broker is used only if there are not enough others;
- no two replicas of a partition share a rack while another rack is free (brokers without a rack form one);
- within that, the broker with the fewest replicas is next, so brokers within a rack are balanced.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from ottla.errors import Code, KafkaError
from ottla.ports import Random

__all__ = ["Candidate", "place"]


class Candidate(msgspec.Struct, frozen=True):
    id: int
    rack: str | None = None
    active: bool = True


def place(
    candidates: Sequence[Candidate],
    *,
    partitions: int,
    replication_factor: int,
    random: Random,
    present: Sequence[Sequence[int]] = (),
) -> list[tuple[int, ...]]:
    """One tuple of broker ids per partition, or KafkaError(INVALID_REPLICATION_FACTOR) in Kafka's words.

    `present` are the replicas of the topic's existing partitions: they count for the balance.
    """
    _check(candidates, replication_factor)
    brokers = random.sample(sorted(candidates, key=lambda each: each.id), len(candidates))
    if len(brokers) == 1:
        return [(brokers[0].id,)] * partitions
    placer = _Placer(brokers, present)
    return [placer.next_partition(replication_factor) for _ in range(partitions)]


def _check(candidates: Sequence[Candidate], replication_factor: int) -> None:
    if replication_factor <= 0:
        reason = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
    elif not any(each.active for each in candidates):
        reason = "All brokers are currently fenced."
    elif replication_factor > len(candidates):
        reason = (
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(candidates)} broker(s) are registered."
        )
    else:
        return
    raise KafkaError(
        Code.invalid_replication_factor, f"Unable to replicate the partition {replication_factor} time(s): {reason}"
    )


class _Placer:
    def __init__(self, brokers: Sequence[Candidate], present: Sequence[Sequence[int]]) -> None:
        self._brokers = brokers
        self._able = [position for position, each in enumerate(brokers) if each.active]
        led = Counter(replicas[0] for replicas in present)
        held = Counter(replica for replicas in present for replica in replicas)
        self._led = [led[each.id] for each in brokers]
        self._held = [held[each.id] for each in brokers]

    def next_partition(self, replication_factor: int) -> tuple[int, ...]:
        leader = min(self._able, key=self._led.__getitem__)
        chosen = [leader]
        while len(chosen) < replication_factor:
            chosen.append(self._next(chosen, turn=self._led[leader]))
        self._led[leader] += 1
        for each in chosen:
            self._held[each] += 1
        return tuple(self._brokers[each].id for each in chosen)

    def _next(self, chosen: list[int], *, turn: int) -> int:
        """The round shifts the order of followers, so that a broker's failure spreads its load over several others."""
        racks = [self._brokers[each].rack for each in chosen]
        count, start = len(self._brokers), chosen[0] + 1 + turn

        def cost(position: int) -> tuple[bool, int, int, int]:
            broker = self._brokers[position]
            distance = (position - start) % count
            return not broker.active, racks.count(broker.rack), self._held[position], distance

        return min((each for each in range(count) if each not in chosen), key=cost)
