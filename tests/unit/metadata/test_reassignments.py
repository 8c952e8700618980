"""Partitions move: asked, under way, completed by the isr, cancelled."""

from typing import Any

import pytest
from ottla.errors import Code
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.reassignments import ongoing
from ottla.metadata.model.state import NO_LEADER, PartitionState
from support.decisions import Fleet


def shape(state: PartitionState) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return state.replicas, state.adding, state.removing


def moving(brokers: int = 6, **settings: Any) -> Fleet:
    """0, 1, 2 → 3, 4, 5."""
    fleet = Fleet(brokers, **settings)
    fleet.topic([0, 1, 2])
    assert fleet.reassign(3, 4, 5).ok
    return fleet


def test_a_move_ends_when_all_new_replicas_are_in_sync() -> None:
    fleet = moving()
    assert shape(fleet.partition()) == ((3, 4, 5, 0, 1, 2), (3, 4, 5), (0, 1, 2))
    assert (fleet.partition().leader, fleet.partition().leader_epoch) == (0, 0), "nobody lost anything yet"
    assert fleet.sync(0, 1, 2, 3, 4) is Code.none
    assert fleet.partition().adding == (3, 4, 5)
    assert fleet.sync(0, 1, 2, 3, 4, 5) is Code.new_leader_elected
    state = fleet.partition()
    assert shape(state) == ((3, 4, 5), (), ())
    assert (state.leader, state.leader_epoch, state.isr) == (3, 1, (3, 4, 5))
    assert [directory.int for directory in state.directories] == [1003, 1004, 1005]


def test_the_leader_stays_when_it_is_not_removed() -> None:
    fleet = Fleet(brokers=4)
    fleet.topic([0, 1, 2])
    fleet.reassign(3, 0, 1)
    assert fleet.sync(0, 1, 3) is Code.none
    state = fleet.partition()
    assert (state.replicas, state.leader, state.leader_epoch) == ((3, 0, 1), 0, 1), "a replica went: a new term"


@pytest.mark.parametrize(
    ("target", "replicas", "leader", "term"),
    [
        ((2, 1, 0), (2, 1, 0), 0, 0),
        ((0, 1), (0, 1), 0, 1),
        ((1,), (1,), 1, 1),
        ((0, 1, 2), (0, 1, 2), 0, 0),
    ],
)
def test_what_needs_no_copying_is_done_at_once(
    target: tuple[int, ...], replicas: tuple[int, ...], leader: int, term: int
) -> None:
    fleet = Fleet(brokers=3)
    fleet.topic([0, 1, 2])
    assert fleet.reassign(*target).ok
    state = fleet.partition()
    assert shape(state) == (replicas, (), ())
    assert (state.leader, state.leader_epoch) == (leader, term)


def test_a_larger_replication_factor() -> None:
    fleet = Fleet(brokers=3)
    fleet.topic([0])
    fleet.reassign(0, 1, 2)
    fleet.sync(0, 1)
    assert fleet.partition().adding == (1, 2)
    fleet.sync(0, 1, 2)
    assert shape(fleet.partition()) == ((0, 1, 2), (), ())


def test_cancel_goes_back() -> None:
    fleet = moving()
    fleet.sync(0, 1, 2, 3)
    assert fleet.cancel().ok
    state = fleet.partition()
    assert shape(state) == ((0, 1, 2), (), ())
    assert (state.isr, state.leader, state.leader_epoch) == ((0, 1, 2), 0, 1)
    assert fleet.cancel().code is Code.no_reassignment_in_progress


def test_a_cancel_after_a_change_of_plan_goes_back_to_the_start() -> None:
    fleet = moving()
    assert fleet.reassign(0, 4).ok
    assert shape(fleet.partition()) == ((0, 4, 1, 2, 3, 5), (3, 4, 5), (1, 2, 3, 5))
    fleet.cancel()
    assert shape(fleet.partition()) == ((0, 1, 2), (), ())


def test_reassigning_back_is_a_cancel_too() -> None:
    fleet = moving()
    assert fleet.reassign(0, 1, 2).ok
    assert shape(fleet.partition()) == ((0, 1, 2), (), ())


@pytest.mark.parametrize("unclean", [False, True])
def test_a_cancel_that_would_lose_records(unclean: bool) -> None:
    fleet = moving(unclean_elections=unclean)
    fleet.sync(0, 1, 2, 3)
    for broker in (1, 2, 0):
        fleet.fence(broker)
    assert (fleet.partition().leader, fleet.partition().isr) == (3, (3,))
    fleet.unfence(1)
    outcome = fleet.cancel()
    if unclean:
        assert outcome.ok and (fleet.partition().leader, fleet.partition().isr) == (1, (1,))
    else:
        assert outcome.code is Code.invalid_replica_assignment
        assert "because it would require an unclean leader election" in outcome.message
        assert fleet.partition().adding == (3, 4, 5)


@pytest.mark.parametrize(
    ("wanted", "options", "code", "message"),
    [
        (ask.Reassignment("b", 0, (1,)), {}, Code.unknown_topic_or_partition, "Unable to find a topic named b."),
        (ask.Reassignment("a", 7, (1,)), {}, Code.unknown_topic_or_partition, "Unable to find partition a:7."),
        (ask.Reassignment("a", 0, ()), {}, Code.invalid_replica_assignment, "includes an empty replica list"),
        (ask.Reassignment("a", 0, (1, 1)), {}, Code.invalid_replica_assignment, "the broker 1 more than once"),
        (ask.Reassignment("a", 0, (9,)), {}, Code.invalid_replica_assignment, "broker 9, but no such broker is reg"),
        (
            ask.Reassignment("a", 0, (1,)),
            {"allow_replication_factor_change": False},
            Code.invalid_replication_factor,
            "The replication factor is changed from 2 to 1",
        ),
    ],
)
def test_refused_moves(wanted: ask.Reassignment, options: dict[str, bool], code: Code, message: str) -> None:
    fleet = Fleet(brokers=3)
    fleet.topic([0, 1], [1, 2])
    fine = ask.Reassignment("a", 1, (2, 1))
    refused, done = fleet.ask(ask.AlterReassignments([wanted, fine], **options))
    assert (refused.value, refused.code) == ((wanted.topic, wanted.index), code)
    assert message in refused.message
    assert done.ok and fleet.partition(1).replicas == (2, 1), "each partition on its own"


def test_the_factor_under_a_move_is_the_one_it_will_have() -> None:
    fleet = moving()
    assert fleet.reassign(3, 4, allow_replication_factor_change=False).code is Code.invalid_replication_factor
    assert fleet.reassign(3, 4, 1, allow_replication_factor_change=False).ok


def test_a_fenced_target_is_waited_for() -> None:
    fleet = Fleet(brokers=3)
    fleet.topic([0, 1])
    fleet.fence(2)
    assert fleet.reassign(0, 2).ok
    assert fleet.sync(0, 1, 2) is Code.ineligible_replica
    fleet.unfence(2)
    assert fleet.sync(0, 1, 2) is Code.none
    assert shape(fleet.partition()) == ((0, 2), (), ())


def test_a_death_on_the_way() -> None:
    """The old leader dies; another old replica leads, and the move goes on."""
    fleet = moving()
    fleet.fence(0)
    assert (fleet.partition().leader, fleet.partition().isr) == (1, (1, 2))
    assert fleet.sync(1, 2, 3, 4, 5) is Code.new_leader_elected
    assert shape(fleet.partition()) == ((3, 4, 5), (), ()) and fleet.partition().leader == 3


def test_fewer_replicas_wait_for_one_that_stays() -> None:
    fleet = Fleet(brokers=3)
    fleet.topic([0, 1])
    fleet.sync(0)
    fleet.reassign(1)
    assert shape(fleet.partition()) == ((1, 0), (), (0,))
    fleet.sync(0, 1)
    assert shape(fleet.partition()) == ((1,), (), ()) and fleet.partition().leader == 1


def test_moves_survive_a_snapshot_and_are_listed() -> None:
    fleet = moving()
    fleet.topic([0, 1], name="still")
    restored = type(fleet.image).from_snapshot(fleet.image.to_snapshot())
    assert restored == fleet.image
    assert [(topic.name, [s.index for s in states]) for topic, states in ongoing(restored)] == [("a", [0])]
    assert list(ongoing(restored, {"still": [0], "none": [1], "a": [4]})) == []
    assert [topic.name for topic, _ in ongoing(restored, {"a": [0, 1]})] == ["a"]


def test_growth_and_deletion_under_a_move() -> None:
    fleet = moving()
    assert fleet.ask(ask.CreatePartitions([ask.NewPartitions("a", 3)]))[0].ok
    assert [len(state.replicas) for state in fleet.image.topics["a"].partitions] == [6, 3, 3]
    assert fleet.ask(ask.DeleteTopics([ask.TopicRef("a")]))[0].ok
    assert not list(ongoing(fleet.image)) and not fleet.image.partition_count


def test_nobody_leads_and_the_move_is_cancelled() -> None:
    fleet = moving(min_insync_replicas=2)
    for broker in range(3):
        fleet.fence(broker)
    assert fleet.partition().leader == NO_LEADER
    assert fleet.cancel().ok
    assert (fleet.partition().replicas, fleet.partition().elr) == ((0, 1, 2), (1, 2))
    fleet.unfence(1)
    assert fleet.partition().leader == 1
