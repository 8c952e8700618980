"""May this broker be restarted? And: emptying one, and the fleet's health."""

from typing import Any

import pytest
from ottla.errors import Code
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.draining import Progress, drain, drain_progress
from ottla.metadata.decisions.health import Health, fleet_health
from ottla.metadata.decisions.safety import Verdict, may_restart
from support.decisions import Fleet

THREE = frozenset({0, 1, 2})


def verdict(fleet: Fleet, broker: int, **changes: Any) -> Verdict:
    facts = {"voters": THREE, "voters_alive": THREE, "brokers_alive": THREE, "isr_size_min_of": lambda topic: 2}
    return may_restart(fleet.image, broker, **{**facts, **changes})


def three(*assignments: list[int]) -> Fleet:
    fleet = Fleet(brokers=3, min_insync_replicas=2)
    fleet.topic(*(assignments or ([0, 1, 2], [1, 2, 0])))
    return fleet


def test_a_healthy_fleet_can_lose_one() -> None:
    assert all(verdict(three(), broker) == Verdict() and verdict(three(), broker).yes for broker in range(3))


def test_another_broker_is_down() -> None:
    fleet = three()
    fleet.fence(2)
    answer = verdict(fleet, 0)
    assert not answer.yes and not answer.reasons
    assert [(each.topic, each.index) for each in answer.partitions] == [("a", 0), ("a", 1)]
    assert answer.partitions[0].reason == "would go below min ISR: 1 in sync, 2 are needed (broker 2 is down)"
    assert verdict(fleet, 2, brokers_alive={0, 1}).yes, "the one that is down may be started"


def test_another_broker_is_still_catching_up() -> None:
    fleet = three()
    fleet.fence(2)
    fleet.unfence(2)
    fleet.sync(0, 1, 2)
    answer = verdict(fleet, 0)
    assert [each.index for each in answer.partitions] == [1]
    assert answer.partitions[0].reason.endswith("(broker 2 is still recovering)")
    own = verdict(fleet, 2)
    assert [each.reason for each in own.partitions] == ["is still recovering: broker 2 is not in sync yet"]
    fleet.sync(1, 0, 2, index=1)
    assert verdict(fleet, 0).yes and verdict(fleet, 2).yes


def test_a_broker_that_is_just_starting() -> None:
    fleet = three()
    fleet.fence(2)
    answer = verdict(fleet, 2)
    assert answer.reasons == ["broker 2 is still recovering: it has registered and does not serve yet"]


@pytest.mark.parametrize(
    ("voters", "alive", "node", "yes"),
    [
        ({0, 1, 2}, {0, 1, 2}, 0, True),
        ({0, 1, 2}, {0, 1}, 0, False),
        ({0, 1, 2}, {0, 1}, 2, True),
        ({0, 1}, {0, 1}, 0, False),
        ({0}, {0}, 0, True),
        ({7, 8, 9}, {7, 8}, 0, True),
        ({7, 8, 9}, {7, 8}, 7, False),
    ],
)
def test_the_quorum(voters: set[int], alive: set[int], node: int, yes: bool) -> None:
    answer = verdict(Fleet(brokers=3), node, voters=voters, voters_alive=alive)
    assert answer.yes is yes
    assert yes or "would lose the quorum" in answer.reasons[0]


@pytest.mark.parametrize("replicas", [[0], [0, 1]])
def test_without_a_replica_to_spare_it_is_said_and_does_not_block(replicas: list[int]) -> None:
    answer = verdict(three(replicas), 0)
    assert answer.yes and [(each.topic, each.index) for each in answer.warnings] == [("a", 0)]


# -- emptying a broker


def test_leaders_are_drained() -> None:
    fleet = three([0, 1, 2], [0, 2, 1], [1, 0, 2], [0, 1, 2])
    fleet.sync(0, index=3)
    plan = drain(fleet.image, 0, leaders_only=True)
    assert (plan.moves, [each.index for each in plan.stuck]) == (2, [3])
    for command in plan.commands:
        fleet.ask(command)
    assert drain_progress(fleet.image, 0) == Progress(leaders_left=1, replicas_left=4, moving=0)
    assert drain(fleet.image, 0, leaders_only=True).commands == []


def test_all_replicas_are_drained_to_other_racks() -> None:
    fleet = Fleet(brokers=0)
    for broker, rack in enumerate("aabbcc"):
        fleet.join(broker, rack=rack)
    fleet.topic([0, 2, 4], [2, 0, 5], [4, 3, 0])
    plan = drain(fleet.image, 0, leaders_only=False)
    assert plan.moves == 3 and not plan.stuck
    (command,) = plan.commands
    assert isinstance(command, ask.AlterReassignments)
    assert [each.replicas for each in command.partitions] == [(1, 2, 4), (2, 1, 5), (4, 3, 1)]
    assert all(outcome.ok for outcome in fleet.ask(command))
    assert drain_progress(fleet.image, 0) == Progress(leaders_left=1, replicas_left=3, moving=3)
    assert drain(fleet.image, 0, leaders_only=False).commands == [], "asking again moves nothing twice"
    assert fleet.sync(0, 2, 4, 1) is Code.new_leader_elected
    assert drain_progress(fleet.image, 0) == Progress(leaders_left=0, replicas_left=2, moving=2)


def test_a_drain_spreads_what_it_moves() -> None:
    fleet = Fleet(brokers=5)
    fleet.topic(*([0, 1] for _ in range(9)))
    (command,) = drain(fleet.image, 0, leaders_only=False).commands
    assert isinstance(command, ask.AlterReassignments)
    targets = [each.replicas[0] for each in command.partitions if each.replicas]
    assert sorted(targets.count(broker) for broker in (2, 3, 4)) == [3, 3, 3]


def test_there_may_be_no_place_to_go() -> None:
    plan = drain(three().image, 0, leaders_only=False)
    assert not plan.commands and [each.index for each in plan.stuck] == [0, 1]


# -- health


def test_health() -> None:
    fleet = three([0, 1, 2], [1, 2, 0], [2, 1, 0])
    fleet.topic([2], name="alone")
    assert fleet_health(fleet.image, lambda topic: 2) == Health(at_min_isr=1)
    fleet.fence(2)
    assert fleet_health(fleet.image, lambda topic: 2) == Health(
        under_replicated=4,
        under_min_isr=1,
        at_min_isr=3,
        offline=1,
        without_preferred_leader=2,
        brokers_fenced=1,
    )


def test_a_growing_partition_is_not_under_replicated() -> None:
    fleet = three([0, 1])
    fleet.reassign(0, 1, 2)
    health = fleet_health(fleet.image, lambda topic: 1)
    assert (health.under_replicated, health.reassigning) == (0, 1)
