from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.placement import Candidate, place

candidates = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.booleans()), min_size=1, max_size=9).map(
    lambda kinds: [Candidate(number * 3, rack, active) for number, (rack, active) in enumerate(kinds)]
)


@given(candidates, st.integers(1, 40), st.integers(1, 9), st.integers())
def test_what_a_placement_promises(brokers: list[Candidate], partitions: int, factor: int, seed: int) -> None:
    active = [each for each in brokers if each.active]
    if factor > len(brokers) or not active:
        with pytest.raises(KafkaError) as refused:
            place(brokers, partitions=partitions, replication_factor=factor, random=Random(seed))
        assert refused.value.code is Code.invalid_replication_factor
        return
    placed = place(brokers, partitions=partitions, replication_factor=factor, random=Random(seed))
    by_id = {each.id: each for each in brokers}
    assert len(placed) == partitions
    for replicas in placed:
        assert len(replicas) == len(set(replicas)) == factor
        assert by_id[replicas[0]].active
        chosen = [by_id[replica] for replica in replicas]
        assert sum(each.active for each in chosen) == min(factor, len(active)), "fenced ones only as a last resort"
        racks = Counter(each.rack for each in chosen if each.active)
        free = {each.rack for each in active} - racks.keys()
        assert not free or max(racks.values()) == 1, "two replicas share a rack while another is free"
    leaders = Counter(replicas[0] for replicas in placed)
    counts = [leaders[each.id] for each in active]
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(("racks", "spread_max"), [("abc", 1), ("aabbcc", 2), ("abcd", 2), ("aaaa", 2)])
def test_even_racks_get_even_replicas(racks: str, spread_max: int) -> None:
    brokers = [Candidate(number, rack) for number, rack in enumerate(racks)]
    placed = place(brokers, partitions=120, replication_factor=3, random=Random(5))
    counts = Counter(replica for replicas in placed for replica in replicas)
    assert max(counts.values()) - min(counts.values()) <= spread_max


def test_uneven_racks_are_even_inside() -> None:
    brokers = [Candidate(0, "a"), Candidate(1, "b"), Candidate(2, "b"), Candidate(3, "b")]
    placed = place(brokers, partitions=90, replication_factor=2, random=Random(5))
    counts = Counter(replica for replicas in placed for replica in replicas)
    inside = [counts[1], counts[2], counts[3]]
    assert max(inside) - min(inside) <= 2


@given(st.lists(st.integers(1, 5), min_size=2, max_size=12), st.integers(1, 3), st.integers())
def test_growth_in_steps_is_as_even_as_growth_at_once(steps: list[int], factor: int, seed: int) -> None:
    brokers = [Candidate(number, "abc"[number % 3]) for number in range(5)]
    random, present = Random(seed), list[tuple[int, ...]]()
    for more in steps:
        present += place(brokers, partitions=more, replication_factor=factor, random=random, present=present)
    leaders = Counter(replicas[0] for replicas in present)
    counts = [leaders[each.id] for each in brokers]
    assert max(counts) - min(counts) <= 1
    assert all(len({replica % 3 for replica in replicas}) == factor for replicas in present), "a rack each"


def test_growth_fills_brokers_that_joined_later() -> None:
    brokers = [Candidate(number) for number in range(4)]
    present = [(0, 1), (1, 0)] * 3
    placed = place(brokers, partitions=6, replication_factor=2, random=Random(5), present=present)
    assert Counter(replicas[0] for replicas in placed) == {2: 3, 3: 3}
    assert {replica for replicas in placed for replica in replicas} == {2, 3}


def test_followers_of_one_leader_are_spread() -> None:
    brokers = [Candidate(number) for number in range(6)]
    placed = place(brokers, partitions=120, replication_factor=2, random=Random(5))
    followers = Counter(replicas[1] for replicas in placed if replicas[0] == 0)
    assert len(followers) >= 4
