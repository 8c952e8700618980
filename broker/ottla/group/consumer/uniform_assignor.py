"""The `uniform` assignor: first balanced, then sticky, then rack-aware. Pure.

If all members have the same subscription, each has a quota: members keep their partitions up to the quota, and the
remaining partitions go to members below it, preferably in the same rack. Otherwise each partition goes to the least
loaded subscriber, and partitions move from the most to the least loaded until nothing improves.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence

from ottla.group.consumer.assignors import Candidate, Topics
from ottla.group.consumer.member import Partition, Partitions

__all__ = ["uniformly"]

BALANCING_ROUNDS_MAX = 16


def uniformly(members: Sequence[Candidate], topics: Topics) -> dict[str, Partitions]:
    if not members:
        return {}
    if all(member.topics == members[0].topics for member in members):
        return _homogeneous(members, {topic: topics[topic] for topic in members[0].topics if topic in topics})
    return _heterogeneous(members, topics)


# -- all subscribe to the same topics


def _homogeneous(members: Sequence[Candidate], topics: Topics) -> dict[str, Partitions]:
    rest = {(topic, index) for topic, facts in topics.items() for index in range(facts.partitions)}
    share, larger_shares = divmod(len(rest), len(members))
    kept: dict[str, set[Partition]] = {member.id: set() for member in members}
    quota_left: dict[str, int] = {}
    # Members with the most partitions get the larger quotas: otherwise they would have to revoke some.
    for at, member in enumerate(sorted(members, key=lambda each: -len(each.target & rest))):
        quota = share + (at < larger_shares)
        mine = in_order(member.target & rest)[:quota]
        rest.difference_update(mine)
        kept[member.id].update(mine)
        quota_left[member.id] = quota - len(mine)
    left = dict.fromkeys(in_order(rest))
    _fill_from_rack(members, quota_left, left, topics, kept)
    waiting = iter(left)
    for member_id, count in quota_left.items():
        kept[member_id].update(next(waiting) for _ in range(count))
    return {member_id: frozenset(partitions) for member_id, partitions in kept.items()}


def in_order(partitions: Iterable[Partition]) -> list[Partition]:
    """Sorts in many small calls: one call over 150,000 partitions holds the interpreter's lock for 0.2 s."""
    by_topic: dict[bytes, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return [(topic, index) for topic in sorted(by_topic) for index in sorted(by_topic[topic])]


def _fill_from_rack(
    members: Sequence[Candidate],
    quota_left: dict[str, int],
    left: dict[Partition, None],
    topics: Topics,
    kept: dict[str, set[Partition]],
) -> None:
    """Members below their quota first take partitions with a replica in their rack."""
    wanted = {member.rack for member in members if member.rack is not None and quota_left[member.id]}
    near = {rack: _in_rack(rack, left, topics) for rack in wanted} if wanted else {}
    for member in members:
        for partition in near.get(member.rack or "", ()) if quota_left[member.id] else ():
            if partition in left:
                del left[partition]
                kept[member.id].add(partition)
                quota_left[member.id] -= 1
                if not quota_left[member.id]:
                    break


def _in_rack(rack: str, partitions: Iterable[Partition], topics: Topics) -> Iterator[Partition]:
    at_hand = [each for each in partitions if topics[each[0]].racks and rack in topics[each[0]].racks[each[1]]]
    return iter(at_hand)


# -- subscriptions differ


def _heterogeneous(members: Sequence[Candidate], topics: Topics) -> dict[str, Partitions]:
    subscribers = {topic: [at for at, m in enumerate(members) if topic in m.topics] for topic in topics}
    owners: dict[Partition, int] = {
        partition: at
        for at, member in enumerate(members)
        for partition in member.target
        if partition[0] in member.topics and partition[0] in topics and partition[1] < topics[partition[0]].partitions
    }
    load = [0] * len(members)
    for at in owners.values():
        load[at] += 1
    # Topics with the most partitions per subscriber are the most constrained: they come first.
    ordered = sorted(
        (topic for topic in topics if subscribers[topic]),
        key=lambda each: (-topics[each].partitions / len(subscribers[each]), len(subscribers[each]), each),
    )
    for topic in ordered:
        _assign_unowned(topic, topics[topic].partitions, subscribers[topic], owners, load)
    shared = [topic for topic in ordered if len(subscribers[topic]) > 1]
    for _ in range(BALANCING_ROUNDS_MAX):
        # All topics in every round: a move in one topic can enable one in another.
        if not sum(_balance(topic, topics[topic].partitions, subscribers[topic], owners, load) for topic in shared):
            break
    assigned: dict[str, set[Partition]] = {member.id: set() for member in members}
    for partition, at in owners.items():
        assigned[members[at].id].add(partition)
    return {member_id: frozenset(partitions) for member_id, partitions in assigned.items()}


def _assign_unowned(
    topic: bytes, partitions: int, subscribers: Sequence[int], owners: dict[Partition, int], load: list[int]
) -> None:
    """Assign each partition without an owner to its least loaded subscriber."""
    least = [(load[at], at) for at in subscribers]
    heapq.heapify(least)
    for index in range(partitions):
        if (topic, index) not in owners:
            _, at = least[0]
            owners[topic, index] = at
            load[at] += 1
            heapq.heapreplace(least, (load[at], at))


def _balance(
    topic: bytes, partitions: int, subscribers: Sequence[int], owners: dict[Partition, int], load: list[int]
) -> int:
    """Move partitions of this topic from the most to the least loaded subscribers. Returns how many moved."""
    held: dict[int, list[int]] = {}
    for index in range(partitions):
        held.setdefault(owners[topic, index], []).append(index)
    if not held or max(load[at] for at in held) - min(map(load.__getitem__, subscribers)) <= 1:
        return 0
    least = [(load[at], at) for at in subscribers]
    most = [(-load[at], at) for at in held]
    heapq.heapify(least)
    heapq.heapify(most)
    moves = 0
    while most:
        giver, taker = most[0][1], least[0][1]
        if -most[0][0] != load[giver] or not held[giver]:  # a stale entry
            _update_heap(most, giver, -load[giver], keep=bool(held[giver]))
        elif least[0][0] != load[taker]:
            _update_heap(least, taker, load[taker], keep=True)
        elif load[giver] - load[taker] <= 1:
            break
        else:
            index = held[giver].pop()
            owners[topic, index] = taker
            load[giver] -= 1
            load[taker] += 1
            moves += 1
    return moves


def _update_heap(heap: list[tuple[int, int]], at: int, value: int, *, keep: bool) -> None:
    if keep:
        heapq.heapreplace(heap, (value, at))
    else:
        heapq.heappop(heap)
