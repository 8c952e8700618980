"""The controller's decisions on brokers and in-sync replicas as tables: command in, codes, messages and records out."""

import uuid
from typing import Any

import pytest
from ottla.errors import Code
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import NewTopic
from ottla.metadata.decisions.features import SUPPORTED_FEATURES
from ottla.metadata.model.records import broker_change_record
from ottla.metadata.model.state import NO_LEADER
from support.decisions import CLUSTER, Fleet, refusal


def test_registration() -> None:
    fleet = Fleet(brokers=0, live_brokers={0})
    epoch = fleet.join(0, rack="a", grpc_port=9190)
    broker = fleet.image.brokers[0]
    assert epoch == broker.epoch == 2 and broker.is_active
    assert (broker.rack, broker.grpc_port, broker.listeners[0].port) == ("a", 9190, 9092)
    again = ask.RegisterBroker(0, broker.incarnation, CLUSTER, [], features=SUPPORTED_FEATURES)
    assert fleet.ask(again) == epoch, "the same incarnation keeps its epoch"
    other = ask.RegisterBroker(0, uuid.UUID(int=5), CLUSTER, [], features=SUPPORTED_FEATURES)
    assert refusal(fleet, other).code is Code.duplicate_broker_registration
    fleet.settings["live_brokers"] = set()
    assert fleet.ask(other) == fleet.image.version > epoch


def test_refused_registration() -> None:
    fleet = Fleet(brokers=0)
    foreign = ask.RegisterBroker(0, uuid.UUID(int=5), "other", [], features=SUPPORTED_FEATURES)
    assert refusal(fleet, foreign).code is Code.inconsistent_cluster_id
    old = ask.RegisterBroker(0, uuid.UUID(int=5), CLUSTER, [], features={"metadata.version": (7, 20)})
    assert refusal(fleet, old).code is Code.unsupported_version


def test_a_sole_broker_that_died_leads_again_with_a_new_epoch() -> None:
    fleet = Fleet()
    fleet.create(NewTopic("a", 2, 1))
    fleet.join(0)
    states = fleet.image.topics["a"].partitions
    assert [(state.leader, state.leader_epoch, state.isr) for state in states] == [(0, 2, (0,))] * 2


def test_leaders_move_when_a_broker_is_fenced() -> None:
    fleet = Fleet(brokers=3)
    fleet.create(NewTopic("a", assignments=[(0, [0, 1, 2]), (1, [1, 2, 0])]), NewTopic("b", assignments=[(0, [0])]))
    fleet.ask(ask.FenceBroker(0, fleet.image.brokers[0].epoch))
    (first, second), (alone,) = (fleet.image.topics[name].partitions for name in "ab")
    assert (first.leader, first.leader_epoch, first.isr) == (1, 1, (1, 2))
    assert (second.leader, second.leader_epoch, second.isr) == (1, 0, (1, 2))
    assert (alone.leader, alone.leader_epoch, alone.isr, alone.elr) == (NO_LEADER, 1, (), (0,))
    fleet.ask(ask.UnfenceBroker(0, fleet.image.brokers[0].epoch))
    (first, _), (alone,) = (fleet.image.topics[name].partitions for name in "ab")
    assert (first.leader, alone.leader, alone.leader_epoch) == (1, 0, 2)


def test_stale_broker_epochs_and_producer_ids() -> None:
    fleet = Fleet()
    epoch = fleet.image.brokers[0].epoch
    blocks = [fleet.ask(ask.AllocateProducerIds(0, epoch)) for _ in range(3)]
    assert [(block.first, block.size) for block in blocks] == [(0, 1000), (1000, 1000), (2000, 1000)]
    for command in (ask.AllocateProducerIds(0, epoch + 1), ask.FenceBroker(0, 99), ask.UnfenceBroker(8, 1)):
        assert refusal(fleet, command).code is Code.stale_broker_epoch
    assert refusal(fleet, ask.UnregisterBroker(7)).code is Code.broker_id_not_registered
    fleet.ask(ask.UnregisterBroker(0))
    assert not fleet.image.brokers


def isr_change(fleet: Fleet, isr: list[tuple[int, int]], *, index: int = 0, **epochs: int) -> ask.IsrChange:
    return ask.IsrChange(
        fleet.image.topics["a"].id, index, epochs.get("leader_epoch", 0), epochs.get("partition_epoch", 0), isr
    )


@pytest.mark.parametrize(
    ("isr", "options", "broker", "code"),
    [
        ([(0, -1), (1, -1)], {}, 0, Code.none),
        ([(0, -1)], {"leader_epoch": 1}, 0, Code.not_controller),
        ([(0, -1)], {"partition_epoch": 1}, 0, Code.not_controller),
        ([(0, -1)], {"leader_epoch": -1}, 0, Code.fenced_leader_epoch),
        ([(0, -1)], {"partition_epoch": -1}, 0, Code.invalid_update_version),
        ([(0, -1)], {"index": 5}, 0, Code.unknown_topic_or_partition),
        ([(1, -1)], {}, 1, Code.invalid_request),
        ([(1, -1)], {}, 0, Code.invalid_request),
        ([(0, -1), (0, -1)], {}, 0, Code.invalid_request),
        ([(0, -1), (7, -1)], {}, 0, Code.invalid_request),
        ([(0, -1), (1, 12345)], {}, 0, Code.ineligible_replica),
        ([(0, -1), (2, -1)], {}, 0, Code.ineligible_replica),
    ],
)
def test_alter_partition(isr: list[tuple[int, int]], options: dict[str, int], broker: int, code: Code) -> None:
    fleet = Fleet(brokers=3)
    fleet.create(NewTopic("a", assignments=[(0, [0, 1, 2])]))
    fleet.image, _ = fleet.image.apply([_fenced(fleet, 2)], version=fleet.image.version + 1, epoch=1)
    command = ask.AlterPartition(broker, fleet.image.brokers[broker].epoch, [isr_change(fleet, isr, **options)])
    outcome = fleet.ask(command)[0]
    state = fleet.image.topics["a"].partitions[0]
    assert outcome.code is code
    if code is Code.none:
        assert outcome.value == state and (state.isr, state.partition_epoch, state.leader_epoch) == ((0, 1), 1, 0)
    else:
        assert (outcome.value, state.isr, state.partition_epoch) == (None, (0, 1, 2), 0)


def _fenced(fleet: Fleet, broker: int) -> Any:
    return broker_change_record(broker_id=broker, epoch=fleet.image.brokers[broker].epoch, fenced=True)
