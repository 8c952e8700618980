"""Elections that somebody asks for, and those that the controller owes."""

from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions import balance, duties
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import ElectionType, ElectLeaders
from ottla.metadata.model.state import NO_LEADER, ResourceType
from support.decisions import Fleet

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


def after_a_restart() -> Fleet:
    """Broker 0 is back in sync, and leads nothing of what it should."""
    fleet = Fleet(brokers=3)
    fleet.topic([0, 1, 2], [1, 2, 0], [0, 2, 1])
    fleet.fence(0)
    fleet.unfence(0)
    for index in range(3):
        fleet.sync(0, 1, 2, index=index)
    assert [fleet.partition(index).leader for index in range(3)] == [1, 1, 2]
    return fleet


def codes(outcomes: Any) -> list[tuple[tuple[str, int], Code]]:
    return [(outcome.value, outcome.code) for outcome in outcomes]


def test_preferred_leaders_by_name() -> None:
    fleet = after_a_restart()
    outcomes = fleet.ask(ElectLeaders(PREFERRED, [("a", 0), ("a", 1), ("a", 9), ("b", 0)]))
    assert codes(outcomes) == [
        (("a", 0), Code.none),
        (("a", 1), Code.election_not_needed),
        (("a", 9), Code.unknown_topic_or_partition),
        (("b", 0), Code.unknown_topic_or_partition),
    ]
    assert outcomes[1].message == "Leader election not needed for topic partition."
    assert (fleet.partition(0).leader, fleet.partition(0).leader_epoch) == (0, 2)
    assert fleet.partition(2).leader == 2


def test_all_partitions_leave_out_the_content() -> None:
    fleet = after_a_restart()
    assert codes(fleet.ask(ElectLeaders(PREFERRED))) == [(("a", 0), Code.none), (("a", 2), Code.none)]
    assert fleet.ask(ElectLeaders(PREFERRED)) == []


def test_the_preferred_leader_is_behind_or_down() -> None:
    fleet = Fleet(brokers=3)
    fleet.topic([0, 1, 2])
    fleet.fence(0)
    for _ in range(2):
        (outcome,) = fleet.ask(ElectLeaders(PREFERRED, [("a", 0)]))
        assert outcome.code is Code.preferred_leader_not_available
        fleet.unfence(0)


def test_unclean_election_by_hand() -> None:
    fleet = Fleet(brokers=2)
    fleet.topic([0, 1])
    assert codes(fleet.ask(ElectLeaders(UNCLEAN, [("a", 0)]))) == [(("a", 0), Code.election_not_needed)]
    fleet.sync(0)
    fleet.fence(0)
    assert fleet.partition().leader == NO_LEADER
    assert fleet.ask(ElectLeaders(UNCLEAN, [("a", 0)]))[0].ok
    assert (fleet.partition().leader, fleet.partition().isr, fleet.partition().elr) == (1, (1,), ())
    fleet.fence(1)
    assert codes(fleet.ask(ElectLeaders(UNCLEAN))) == [(("a", 0), Code.eligible_leaders_not_available)]


def test_an_unknown_kind_of_election() -> None:
    with pytest.raises(KafkaError) as refused:
        Fleet().ask(ElectLeaders(2))
    assert refused.value.code is Code.invalid_request


def test_leaders_move_away_where_they_can() -> None:
    fleet = Fleet(brokers=3)
    fleet.topic([0, 1], [0, 2], [1, 0])
    fleet.sync(0, index=1)
    assert fleet.ask(ask.MoveLeadersAway(0)) == 1
    assert [fleet.partition(index).leader for index in range(3)] == [1, 0, 1]
    assert fleet.partition(0).isr == (0, 1), "it leads no more, it is still in sync"
    version = fleet.image.version
    assert fleet.ask(ask.MoveLeadersAway(0)) == 1 and fleet.image.version == version


def test_balance_is_due_above_the_threshold() -> None:
    fleet = after_a_restart()
    assert balance.preferred_due(fleet.image) == ElectLeaders(PREFERRED, [("a", 0), ("a", 2)])
    fleet.ask(ElectLeaders(PREFERRED, [("a", 0)]))
    assert balance.preferred_due(fleet.image, imbalance_percent_max=50) is None
    due = balance.preferred_due(fleet.image, imbalance_percent_max=49)
    assert due == ElectLeaders(PREFERRED, [("a", 2)])
    fleet.ask(due)
    assert balance.preferred_due(fleet.image) is None


def test_balance_does_not_try_in_vain() -> None:
    fleet = Fleet(brokers=2)
    fleet.topic([0, 1])
    fleet.fence(0)
    assert balance.preferred_due(fleet.image) is None, "it is down"
    fleet.unfence(0)
    assert balance.preferred_due(fleet.image) is None, "it is behind"


def test_the_duties_of_a_controller() -> None:
    settings = {
        "auto.leader.rebalance.enable": True,
        "leader.imbalance.check.interval.seconds": 300,
        "unclean.leader.election.interval.ms": 1500,
        "delegation.token.expiry.check.interval.ms": 3_600_000,
    }
    assert [duty.seconds(settings.__getitem__) for duty in duties.PERIODIC] == [300.0, 1.5, 30.0]
    fleet = after_a_restart()
    preferred, unclean, expired_credentials = duties.PERIODIC
    assert preferred.due(fleet.image, fleet.context(), settings.__getitem__) is not None
    settings["auto.leader.rebalance.enable"] = False
    assert preferred.due(fleet.image, fleet.context(), settings.__getitem__) is None
    assert unclean.due(fleet.image, fleet.context(), settings.__getitem__) is None
    assert expired_credentials.due(fleet.image, fleet.context(), settings.__getitem__) is None


def test_an_unclean_election_becomes_due_when_the_topic_allows_it() -> None:
    fleet = Fleet(brokers=2)
    fleet.topic([0, 1])
    fleet.sync(0)
    fleet.fence(0)
    assert balance.unclean_due(fleet.image, fleet.context()) is None
    change = ask.SettingChange("unclean.leader.election.enable", ask.SettingOperation.SET, "true")
    fleet.ask(ask.IncrementalAlterConfigs([((ResourceType.TOPIC, "a"), [change])]))
    due = balance.unclean_due(fleet.image, fleet.context())
    assert due == ElectLeaders(UNCLEAN, [("a", 0)])
    fleet.ask(due)
    assert fleet.partition().leader == 1
    assert balance.unclean_due(fleet.image, fleet.context()) is None
