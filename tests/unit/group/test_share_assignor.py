"""The `simple` assignor: every partition has a member, every member a partition; even, sticky, the same every time."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from ottla.group.consumer.assignors import Candidate, TopicFacts
from ottla.group.consumer.member import Partitions
from ottla.group.share.assignor import simply

TOPICS = [bytes([number]) * 16 for number in range(3)]


def members_of(count: int, held: dict[str, Partitions] | None = None) -> list[Candidate]:
    known = held or {}
    return [Candidate(f"m{at:02}", frozenset(TOPICS), known.get(f"m{at:02}", frozenset())) for at in range(count)]


def facts_of(*counts: int) -> dict[bytes, TopicFacts]:
    return {topic: TopicFacts(count) for topic, count in zip(TOPICS, counts, strict=False)}


COUNTS = st.lists(st.integers(0, 6), min_size=1, max_size=3)


@given(st.integers(1, 20), COUNTS)
def test_even_and_complete(count: int, partitions: list[int]) -> None:
    facts = facts_of(*partitions)
    everything = {(topic, index) for topic, each in facts.items() for index in range(each.partitions)}
    assigned = simply(members_of(count), facts)
    assert set().union(*assigned.values()) == everything
    sizes = [len(held) for held in assigned.values()]
    crowds = Counter(partition for held in assigned.values() for partition in held).values()
    if everything:
        assert max(sizes) - min(sizes) <= 1 and min(sizes) >= 1
        assert max(crowds) - min(crowds) <= 1


@given(COUNTS, st.lists(st.integers(1, 15), min_size=2, max_size=6))
def test_few_moves_when_members_come_and_go(partitions: list[int], sizes: list[int]) -> None:
    facts = facts_of(*partitions)
    held: dict[str, Partitions] = {}
    for before, after in pairwise(sizes):
        held = simply(members_of(before, held), facts)
        assert simply(members_of(before, held), facts) == held, "nothing moves without a reason"
        again = simply(members_of(after, held), facts)
        if after >= before:
            assert all(again[name] <= mine or len(mine) <= 1 for name, mine in held.items()), "only given up"


@given(st.lists(st.tuples(st.sets(st.sampled_from(TOPICS)), st.booleans()), min_size=1, max_size=8), COUNTS)
def test_nobody_gets_what_it_did_not_ask_for(wishes: list[tuple[set[bytes], bool]], partitions: list[int]) -> None:
    facts = facts_of(*partitions)
    members = [
        Candidate(f"m{at}", frozenset(topics), frozenset({(TOPICS[0], 9)}) if stale else frozenset())
        for at, (topics, stale) in enumerate(wishes)
    ]
    assigned = simply(members, facts)
    assert assigned == simply(list(reversed(members)), facts)
    for member in members:
        offered = {(topic, at) for topic in member.topics if topic in facts for at in range(facts[topic].partitions)}
        assert assigned[member.id] <= offered
        assert bool(assigned[member.id]) == bool(offered)


def test_those_who_share_stay_where_they_are() -> None:
    facts = facts_of(2)
    first = simply(members_of(6), facts)
    without_two = {name: held for name, held in first.items() if name not in ("m00", "m01")}
    members = [member for member in members_of(6, without_two) if member.id in without_two]
    again = simply(members, facts)
    moved = [name for name in again if again[name] != first[name]]
    assert len(moved) <= 1
