"""One partition at a time: who is in sync, who is eligible, who leads, and which epochs rise (KIP-966)."""

import uuid
from typing import Any

import pytest
from ottla.metadata.decisions.commands import ReplicasLost, UnregisterBroker
from ottla.metadata.decisions.elections import Election, Rules, change_record, changed
from ottla.metadata.model.state import NO_LEADER, PartitionState
from support.decisions import Fleet

UNCLEAN = {"unclean_leader_election_enable": "true"}


def state(isr: str, leader: int, *, elr: str = "", last: str = "", replicas: str = "012") -> PartitionState:
    """Brokers have one digit."""
    return PartitionState(
        0, ids(replicas), ids(isr), leader, 5, 9, elr=ids(elr), last_known_elr=ids(last), directories=()
    )


def ids(digits: str) -> tuple[int, ...]:
    return tuple(map(int, digits))


def rules(active: str, **changes: Any) -> Rules:
    fields = {"may_lead": lambda broker: broker in ids(active), "isr_size_min": 2, "directory_for": uuid.UUID}
    return Rules(**{**fields, **changes})


def seen(state: PartitionState) -> tuple[str, str, str, int]:
    isr, elr, last = ("".join(map(str, each)) for each in (state.isr, state.elr, state.last_known_elr))
    return isr, elr, last, state.leader


@pytest.mark.parametrize(
    ("before", "active", "wanted_isr", "after"),
    [
        # The isr may shrink to min.insync.replicas with nothing to remember.
        (state("012", 0), "12", "12", ("12", "", "", 1)),
        (state("012", 0), "012", "01", ("01", "", "", 0)),
        # Below it, whoever leaves stays eligible.
        (state("12", 1), "2", "2", ("2", "1", "", 2)),
        (state("12", 1), "12", "1", ("1", "2", "", 1)),
        (state("2", 2, elr="1"), "", "", ("", "12", "2", NO_LEADER)),
        # Back at min.insync.replicas nobody is merely eligible.
        (state("2", 2, elr="1"), "12", "21", ("21", "", "", 2)),
        (state("2", 2, elr="1"), "02", "20", ("20", "", "", 2)),
        # The eligible lead only when nobody in sync can, in the order of replicas.
        (state("", NO_LEADER, elr="12", last="2"), "1", "", ("1", "2", "", 1)),
        (state("", NO_LEADER, elr="12", last="2"), "12", "", ("1", "2", "", 1)),
        (state("2", 2, elr="1"), "1", "2", ("1", "2", "", 1)),
        (state("2", 2, elr="1"), "12", "2", ("2", "1", "", 2)),
        # The last known leader, when nobody is in sync or eligible; others never.
        (state("", NO_LEADER, last="2"), "012", "", ("2", "", "", 2)),
        (state("", NO_LEADER, last="2"), "01", "", ("", "", "2", NO_LEADER)),
        (state("", NO_LEADER, elr="1", last="2"), "02", "", ("", "1", "2", NO_LEADER)),
        # One replica: its partition waits for it.
        (state("0", 0, replicas="0"), "", "", ("", "0", "0", NO_LEADER)),
        (state("", NO_LEADER, elr="0", last="0", replicas="0"), "0", "", ("0", "", "", 0)),
    ],
)
def test_changes_of_the_isr(
    before: PartitionState, active: str, wanted_isr: str, after: tuple[str, str, str, int]
) -> None:
    new = changed(before, rules(active), isr=ids(wanted_isr))
    assert seen(new) == after
    moved = new.leader != before.leader
    assert (new.leader_epoch, new.partition_epoch) == ((5 + moved, 10) if new != before else (5, 9))


@pytest.mark.parametrize(
    ("before", "active", "after"),
    [
        (state("", NO_LEADER, elr="1", last="1"), "02", ("0", "", "", 0)),
        (state("", NO_LEADER, elr="1", last="1"), "012", ("1", "", "", 1)),
        (state("", NO_LEADER, last="2"), "02", ("2", "", "", 2)),
        (state("", NO_LEADER, last="2"), "", ("", "", "2", NO_LEADER)),
    ],
)
def test_unclean_elections_are_the_last_resort(
    before: PartitionState, active: str, after: tuple[str, str, str, int]
) -> None:
    assert seen(changed(before, rules(active, election=Election.UNCLEAN))) == after


def test_the_preferred_leader_must_be_in_sync() -> None:
    preferred = {"election": Election.PREFERRED}
    assert changed(state("012", 1), rules("012", **preferred)).leader == 0
    behind, down = state("12", 2), state("012", 2)
    assert changed(behind, rules("012", **preferred)) is behind, "the leader that there is stays"
    assert changed(down, rules("12", **preferred)) is down


def test_after_an_unclean_shutdown_a_broker_is_not_eligible() -> None:
    fallen = changed(state("2", 2, elr="1"), rules("01"), isr=(), unclean_shutdown={2})
    assert seen(fallen) == ("1", "", "", 1)
    both = changed(state("", NO_LEADER, elr="12", last="2"), rules(""), unclean_shutdown={1})
    assert seen(both) == ("", "2", "2", NO_LEADER)


def test_a_lower_minimum_ends_eligibility() -> None:
    """With one in-sync replica enough, records are committed that the others do not have."""
    assert seen(changed(state("2", 2, elr="1"), rules("012", isr_size_min=1))) == ("2", "", "", 2)
    alone = changed(state("", NO_LEADER, elr="12", last="2"), rules("1", isr_size_min=1))
    assert seen(alone) == ("1", "", "", 1)


def test_without_the_feature_the_last_in_sync_replica_stays() -> None:
    old = {"elr_enabled": False}
    gone = changed(state("2", 2), rules("", **old), isr=())
    assert seen(gone) == ("2", "", "", NO_LEADER)
    assert seen(changed(gone, rules("012", **old))) == ("2", "", "", 2)
    assert seen(changed(state("12", 1, elr="0"), rules("2", **old), isr=(2,))) == ("2", "", "", 2)


def test_records_name_only_what_changed() -> None:
    before = state("012", 0)
    new = changed(before, rules("012"), isr=(0, 1))
    record = change_record(uuid.UUID(int=1), before, new)
    assert record is not None
    change = record.partition_change
    assert list(change.isr.ids) == [0, 1] and not change.HasField("leader") and not change.HasField("elr")
    assert change_record(uuid.UUID(int=1), before, before) is None


# -- brokers come and go


def test_the_way_down_and_up_again() -> None:
    fleet = Fleet(brokers=3, min_insync_replicas=2)
    fleet.topic([0, 1, 2])
    for broker, after in ((0, ("12", "", "", 1)), (1, ("2", "1", "", 2)), (2, ("", "12", "2", NO_LEADER))):
        fleet.fence(broker)
        assert seen(fleet.partition()) == after
    fleet.unfence(0)
    assert seen(fleet.partition()) == ("", "12", "2", NO_LEADER), "it missed records"
    fleet.unfence(1)
    assert seen(fleet.partition()) == ("1", "2", "", 1)
    assert fleet.partition().leader_epoch == 4


@pytest.mark.parametrize(("clean", "after"), [(True, ("1", "2", "", 1)), (False, ("", "2", "2", NO_LEADER))])
def test_registration_distinguishes_clean_from_unclean(clean: bool, after: tuple[str, str, str, int]) -> None:
    fleet = Fleet(brokers=3, min_insync_replicas=2)
    fleet.topic([0, 1, 2])
    for broker in range(3):
        fleet.fence(broker)
    fleet.join(1, previous_epoch=fleet.epoch(1) if clean else fleet.epoch(1) - 1)
    assert seen(fleet.partition()) == after


def test_all_die_at_once_and_only_the_last_leader_can_lead() -> None:
    fleet = Fleet(brokers=3, min_insync_replicas=2)
    fleet.topic([0, 1, 2])
    for broker in range(3):
        fleet.fence(broker)
    for broker in (0, 1):
        fleet.join(broker)
        assert fleet.partition().leader == NO_LEADER
    fleet.join(2)
    assert seen(fleet.partition()) == ("2", "", "", 2)


def test_a_restart_faster_than_its_session() -> None:
    """The predecessor was never fenced: it leads no more before its successor may."""
    fleet = Fleet(brokers=2)
    fleet.topic([0, 1])
    fleet.topic([0], name="alone")
    fleet.register(0)
    assert (fleet.partition().leader, fleet.partition(topic="alone").leader) == (1, NO_LEADER)
    assert fleet.partition().isr == (1,)


def test_controlled_shutdown_then_clean_restart() -> None:
    fleet = Fleet(brokers=1, live_brokers={0})
    fleet.topic([0])
    fleet.fence(0, shutting_down=True)
    assert seen(fleet.partition()) == ("", "0", "0", NO_LEADER)
    fleet.unfence(0)
    assert not fleet.image.brokers[0].is_active, "who leaves does not come back"
    fleet.rejoin(0)
    assert seen(fleet.partition()) == ("0", "", "", 0)


def test_topics_decide_about_unclean_elections() -> None:
    fleet = Fleet(brokers=2)
    fleet.topic([0, 1])
    fleet.topic([0, 1], name="any", **UNCLEAN)
    fleet.sync(0)
    fleet.sync(0, topic="any")
    fleet.fence(0)
    assert seen(fleet.partition()) == ("", "0", "0", NO_LEADER)
    assert seen(fleet.partition(topic="any")) == ("1", "", "", 1)


def test_replicas_whose_log_dir_failed_lead_nothing_until_a_restart() -> None:
    fleet = Fleet(brokers=2)
    fleet.topic([0, 1], [1, 0])
    fleet.topic([0], name="alone")
    names = [("a", 0), ("alone", 0)]
    lost = [(fleet.image.topics[topic].id, index) for topic, index in names]
    fleet.ask(ReplicasLost(0, fleet.epoch(0), [*lost, (uuid.UUID(int=9), 0)]))
    assert seen(fleet.partition()) == ("1", "", "", 1) and fleet.partition().lost == (0,)
    assert seen(fleet.partition(topic="alone")) == ("", "", "0", NO_LEADER)
    assert fleet.partition(1).isr == (1, 0), "its other log dirs serve"
    fleet.fence(1)
    fleet.unfence(1)
    assert fleet.partition(topic="alone").leader == NO_LEADER, "the broker is active, its replica is not"
    fleet.join(0)
    assert seen(fleet.partition(topic="alone")) == ("0", "", "", 0)
    assert fleet.partition().lost == () and fleet.partition().directories[0] == uuid.UUID(int=1000)


def test_an_unregistered_broker_leads_again_only_as_the_last_known() -> None:
    fleet = Fleet(brokers=2)
    fleet.topic([0, 1])
    fleet.topic([0], name="alone")
    fleet.ask(UnregisterBroker(0))
    assert seen(fleet.partition()) == ("1", "", "", 1)
    assert seen(fleet.partition(topic="alone")) == ("", "", "0", NO_LEADER)
    fleet.join(0)
    assert seen(fleet.partition()) == ("1", "", "", 1)
    assert seen(fleet.partition(topic="alone")) == ("0", "", "", 0)
