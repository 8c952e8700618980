"""Server-side assignors: every partition once, even, sticky, near."""

from hypothesis import given
from hypothesis import strategies as st
from ottla.group.consumer.assignors import Candidate, TopicFacts, by_range
from ottla.group.consumer.uniform_assignor import uniformly

TOPICS = [bytes([number]) * 16 for number in range(4)]


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[Candidate], dict[bytes, TopicFacts]]:
    """Members that subscribe to any topics, with targets that may be out of date but overlap nowhere."""
    facts = {topic: TopicFacts(draw(st.integers(1, 12))) for topic in TOPICS}
    count = draw(st.integers(1, 8))
    same = draw(st.booleans())
    everything = frozenset(draw(st.sets(st.sampled_from(TOPICS), min_size=1)))
    owner = {
        (topic, index): draw(st.integers(-1, count - 1))
        for topic in TOPICS
        for index in range(facts[topic].partitions + 1)  # one that is gone
    }
    members = [
        Candidate(
            id=f"m{at}",
            topics=everything if same else frozenset(draw(st.sets(st.sampled_from(TOPICS)))),
            target=frozenset(partition for partition, held in owner.items() if held == at),
            instance_id=f"i{count - at}" if draw(st.booleans()) else None,
        )
        for at in range(count)
    ]
    return members, facts


def all_of(members: list[Candidate], facts: dict[bytes, TopicFacts]) -> set[tuple[bytes, int]]:
    subscribed = frozenset().union(*(member.topics for member in members))
    return {(topic, index) for topic in subscribed for index in range(facts[topic].partitions)}


@given(groups())
def test_every_partition_has_one_owner_who_subscribes_to_it(
    made: tuple[list[Candidate], dict[bytes, TopicFacts]],
) -> None:
    members, facts = made
    topics = {member.id: member.topics for member in members}
    for assign in (uniformly, by_range):
        assigned = assign(members, facts)
        assert assigned.keys() == topics.keys()
        held = [partition for partitions in assigned.values() for partition in partitions]
        assert len(held) == len(set(held))
        assert set(held) == all_of(members, facts)
        assert all(topic in topics[each] for each, partitions in assigned.items() for topic, _ in partitions)


@given(groups())
def test_uniform_is_even_where_all_subscribe_to_the_same(made: tuple[list[Candidate], dict[bytes, TopicFacts]]) -> None:
    members, facts = made
    if len({member.topics for member in members}) == 1:
        sizes = [len(partitions) for partitions in uniformly(members, facts).values()]
        assert max(sizes) - min(sizes) <= 1


@given(groups())
def test_uniform_leaves_no_move_that_would_help(made: tuple[list[Candidate], dict[bytes, TopicFacts]]) -> None:
    members, facts = made
    assigned = uniformly(members, facts)
    for giver in members:
        for taker in members:
            movable = any(topic in taker.topics for topic, _ in assigned[giver.id])
            assert not movable or len(assigned[giver.id]) - len(assigned[taker.id]) <= 1


@given(groups())
def test_uniform_changes_nothing_the_second_time(made: tuple[list[Candidate], dict[bytes, TopicFacts]]) -> None:
    members, facts = made
    first = uniformly(members, facts)
    again = [Candidate(m.id, m.topics, first[m.id], m.instance_id) for m in members]
    assert uniformly(again, facts) == first


@given(st.integers(1, 12), st.integers(1, 60))
def test_uniform_moves_only_what_a_newcomer_gets(count: int, partitions: int) -> None:
    facts = {TOPICS[0]: TopicFacts(partitions)}
    members = [Candidate(f"m{at}", frozenset(TOPICS[:1])) for at in range(count)]
    before = uniformly(members, facts)
    members = [Candidate(m.id, m.topics, before[m.id]) for m in members] + [Candidate("new", frozenset(TOPICS[:1]))]
    after = uniformly(members, facts)
    moved = sum(len(before[m.id] - after[m.id]) for m in members[:-1])
    assert moved == len(after["new"])


@given(st.integers(2, 12), st.integers(1, 60))
def test_uniform_hands_on_only_what_one_leaves_behind(count: int, partitions: int) -> None:
    facts = {TOPICS[0]: TopicFacts(partitions)}
    members = [Candidate(f"m{at}", frozenset(TOPICS[:1])) for at in range(count)]
    before = uniformly(members, facts)
    stay = [Candidate(m.id, m.topics, before[m.id]) for m in members[1:]]
    after = uniformly(stay, facts)
    assert all(before[m.id] <= after[m.id] for m in stay)


def test_range_gives_the_same_run_in_every_topic() -> None:
    facts = {TOPICS[0]: TopicFacts(7), TOPICS[1]: TopicFacts(7)}
    members = [Candidate(name, frozenset(TOPICS[:2])) for name in ("b", "a", "c")]
    assigned = by_range(members, facts)
    runs = {
        each: [sorted(i for t, i in parts if t == topic) for topic in TOPICS[:2]] for each, parts in assigned.items()
    }
    assert runs == {"a": [[0, 1, 2]] * 2, "b": [[3, 4]] * 2, "c": [[5, 6]] * 2}


def test_range_goes_by_instance_ids_first() -> None:
    facts = {TOPICS[0]: TopicFacts(3)}
    topics = frozenset(TOPICS[:1])
    members = [Candidate("a", topics), Candidate("z", topics, instance_id="1"), Candidate("y", topics, instance_id="2")]
    assert by_range(members, facts) == {
        "z": frozenset({(TOPICS[0], 0)}),
        "y": frozenset({(TOPICS[0], 1)}),
        "a": frozenset({(TOPICS[0], 2)}),
    }


def test_uniform_prefers_partitions_near_the_member() -> None:
    racks = [frozenset({"east"}), frozenset({"west"})] * 3
    facts = {TOPICS[0]: TopicFacts(6, racks)}
    topics = frozenset(TOPICS[:1])
    members = [Candidate("w", topics, rack="west"), Candidate("e", topics, rack="east")]
    assigned = uniformly(members, facts)
    assert {index for _, index in assigned["w"]} == {1, 3, 5}
    assert {index for _, index in assigned["e"]} == {0, 2, 4}


def test_uniform_keeps_a_large_group_as_it_is() -> None:
    facts = {TOPICS[0]: TopicFacts(2000)}
    topics = frozenset(TOPICS[:1])
    targets = {f"m{at}": frozenset[tuple[bytes, int]]() for at in range(200)}
    for _ in range(10):
        targets = uniformly([Candidate(each, topics, held) for each, held in targets.items()], facts)
    assert {len(held) for held in targets.values()} == {10}
