"""The leader's view of its followers: the promises that hold whatever happens, and Kafka's rules one by one."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from ottla.replica.core.isr import NO_EPOCH, LeaderView

LAG_S = 10.0
EPOCHS = {0: 100, 1: 101, 2: 102, 3: 103}


def view_of(*, replicas=(0, 1, 2), isr=(0, 1, 2), isr_size_min=1, high_watermark=0, end=0, epochs=None) -> LeaderView:
    return LeaderView(
        node_id=0,
        replicas=replicas,
        isr=isr,
        isr_size_min=isr_size_min,
        high_watermark=high_watermark,
        end=end,
        now=0.0,
        lag_max_s=LAG_S,
        epoch_of=(EPOCHS if epochs is None else epochs).get,
    )


def ack(
    view: LeaderView, replica: int, end: int, now: float = 0.0, *, epoch: int | None = None, start: int = 0
) -> bool:
    return view.acked(replica, end=end, start=start, broker_epoch=epoch or EPOCHS[replica], now=now)


class LeaderViewMachine(RuleBasedStateMachine):
    """Followers ack, lag, are fenced and come back; the controller answers late, differently or not at all."""

    @initialize(isr_size_min=st.integers(1, 4), end=st.integers(0, 5), high_watermark=st.integers(0, 5))
    def begin(self, isr_size_min, end, high_watermark):
        self.epochs = dict(EPOCHS)
        self.end, self.now = max(end, high_watermark), 0.0
        self.acks = {0: self.end, 1: -1, 2: -1, 3: -1}
        self.view = view_of(
            replicas=(0, 1, 2, 3),
            isr_size_min=isr_size_min,
            high_watermark=high_watermark,
            end=self.end,
            epochs=self.epochs,
        )
        self.seen = high_watermark

    @rule(count=st.integers(1, 5))
    def append(self, count):
        self.end += count
        self.acks[0] = self.end
        self.view.advance(self.end)

    @rule(replica=st.integers(1, 3), behind=st.integers(0, 8))
    def ack(self, replica, behind):
        self.acks[replica] = max(0, self.end - behind)
        ack(self.view, replica, self.acks[replica], self.now, epoch=self.epochs.get(replica, 1))

    @rule(seconds=st.floats(0, 15))
    def wait(self, seconds):
        self.now += seconds
        self.view.refresh(self.now)

    @rule(replica=st.integers(1, 3))
    def fence(self, replica):
        self.epochs.pop(replica, None)
        self.view.refresh(self.now)

    @rule(replica=st.integers(1, 3), epoch=st.integers(200, 300))
    def register(self, replica, epoch):
        self.epochs[replica] = epoch
        self.view.refresh(self.now)

    @rule()
    def propose(self):
        wanted = self.view.wanted_isr(self.now)
        if wanted is not None:
            assert 0 in wanted
            for replica in wanted - self.view.isr:
                assert self.acks[replica] >= max(self.view.high_watermark, self.view.epoch_start)
                assert replica in self.epochs
            members = dict(self.view.propose(wanted, now=self.now))
            assert members.keys() == wanted and members[0] == NO_EPOCH

    @precondition(lambda self: self.view.pending is not None)
    @rule()
    def commit(self):
        self.view.replace(replicas=(0, 1, 2, 3), isr=self.view.pending, now=self.now)

    @precondition(lambda self: self.view.pending is not None)
    @rule()
    def refuse(self):
        self.view.withdraw(now=self.now)

    @rule(replica=st.integers(1, 3))
    def controller_removes(self, replica):
        if self.view.pending is None:
            self.view.replace(replicas=(0, 1, 2, 3), isr=self.view.isr - {replica}, now=self.now)

    @invariant()
    def never_falls_and_never_runs_ahead(self):
        if not hasattr(self, "view"):
            return
        view = self.view
        assert view.high_watermark >= self.seen
        if view.high_watermark > self.seen:
            assert len(view.isr) >= min(view.isr_size_min, 4)
            assert all(self.acks[member] >= view.high_watermark for member in view.maximal)
        self.seen = view.high_watermark

    def teardown(self):
        """Once everybody has everything and is in sync, all of it is committed."""
        if not hasattr(self, "view"):
            return
        self.epochs.update(EPOCHS)
        self.view.replace(replicas=(0, 1, 2, 3), isr=(0, 1, 2, 3), now=self.now)
        for replica in (1, 2, 3):
            ack(self.view, replica, self.end, self.now)
        assert self.view.high_watermark == self.end and self.view.is_complete


LeaderViewMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestLeaderView = LeaderViewMachine.TestCase


def test_alone_everything_is_committed_at_once():
    view = view_of(replicas=(0,), isr=(0,))
    assert view.advance(5) and view.high_watermark == 5
    assert not view.advance(5)


def test_the_slowest_member_holds_the_watermark():
    view = view_of()
    assert not view.advance(10)
    assert not ack(view, 1, 10)
    assert ack(view, 2, 4) and view.high_watermark == 4
    assert ack(view, 2, 10) and view.high_watermark == 10


@pytest.mark.parametrize(("size_min", "isr", "moves"), [(2, (0,), False), (2, (0, 1), True), (9, (0, 1, 2), True)])
def test_below_the_minimum_it_stands_still(size_min, isr, moves):
    view = view_of(isr=isr, isr_size_min=size_min)
    view.advance(3)
    for replica in (1, 2):
        ack(view, replica, 3)
    assert (view.high_watermark == 3) is moves
    assert view.enough_in_sync is moves


def test_a_follower_that_stops_is_left_out_after_the_lag():
    view = view_of()
    view.advance(5)
    ack(view, 1, 5, now=1.0)
    assert view.wanted_isr(now=LAG_S) is None
    assert view.wanted_isr(now=LAG_S + 0.5) == {0, 1}


def test_a_follower_that_has_everything_is_never_left_out():
    view = view_of()
    view.advance(5)
    ack(view, 1, 5)
    ack(view, 2, 5)
    assert view.wanted_isr(now=1000.0) is None


def test_a_busy_follower_that_keeps_up_has_caught_up_a_moment_ago():
    """It never has the very end, but always what was the end a second before."""
    view, now = view_of(replicas=(0, 1), isr=(0, 1)), 0.0
    for end in range(10, 1000, 10):
        now += 1.0
        view.advance(end)
        ack(view, 1, end - 10, now)
        assert view.wanted_isr(now) is None


def test_a_follower_that_falls_further_and_further_behind_is_left_out():
    view, now, dropped = view_of(replicas=(0, 1), isr=(0, 1)), 0.0, False
    for end in range(10, 1000, 10):
        now += 1.0
        view.advance(end)
        ack(view, 1, end // 3, now)
        dropped = dropped or view.wanted_isr(now) == {0}
    assert dropped


def test_a_leader_waits_for_a_follower_that_may_join():
    view = view_of(replicas=(0, 1), isr=(0,))
    view.advance(5)
    assert view.high_watermark == 5
    ack(view, 1, 5, now=1.0)
    view.advance(6)
    assert view.high_watermark == 5, "otherwise a busy leader would always be ahead of it"
    assert view.wanted_isr(now=1.0) == {0, 1}
    assert view.refresh(now=LAG_S + 2.0) and view.high_watermark == 6


@pytest.mark.parametrize("epochs", [{0: 100}, {0: 100, 1: 555}], ids=["fenced", "registered again"])
def test_only_an_active_broker_in_its_present_life_may_join(epochs):
    view = view_of(replicas=(0, 1), isr=(0,), epochs=epochs)
    view.advance(5)
    ack(view, 1, 5)
    assert view.wanted_isr(now=0.0) is None
    ack(view, 1, 5, epoch=555)
    assert view.wanted_isr(now=0.0) == ({0, 1} if 1 in epochs else None)


def test_a_follower_below_the_start_of_the_epoch_may_not_join():
    view = view_of(replicas=(0, 1), isr=(0,), isr_size_min=2, high_watermark=3, end=8)
    ack(view, 1, 7)
    assert view.wanted_isr(now=0.0) is None
    ack(view, 1, 8)
    assert view.wanted_isr(now=0.0) == {0, 1}


def test_who_was_left_out_for_lagging_does_not_come_back_silently():
    """Below the minimum the watermark stands still, and a dead follower may well have all that is committed."""
    view = view_of(replicas=(0, 1), isr=(0, 1), isr_size_min=2)
    view.advance(5)
    ack(view, 1, 5)
    view.advance(6)
    late = LAG_S + 0.5
    assert view.wanted_isr(now=late) == {0}
    view.replace(replicas=(0, 1), isr=(0,), now=late)
    assert view.wanted_isr(now=late) is None
    ack(view, 1, 6, now=late)
    assert view.wanted_isr(now=late) == {0, 1}


def test_a_new_leader_is_settled_when_its_predecessors_records_are_committed():
    view = view_of(replicas=(0, 1), isr=(0, 1), high_watermark=3, end=8)
    assert not view.is_settled
    view.advance(9)
    ack(view, 1, 7)
    assert not view.is_settled
    ack(view, 1, 8)
    assert view.is_settled


def test_while_a_change_is_under_way_both_sets_count():
    view = view_of(isr=(0, 1))
    view.advance(4)
    ack(view, 1, 4)
    ack(view, 2, 4)
    members = view.propose(frozenset({0, 1, 2}), now=0.0)
    assert members == [(0, NO_EPOCH), (1, 101), (2, 102)]
    view.advance(6)
    ack(view, 1, 6)
    assert view.high_watermark == 4
    assert view.wanted_isr(now=100.0) is None, "one change at a time"
    view.withdraw(now=100.0)
    assert view.high_watermark == 6


def test_the_low_watermark_is_that_of_living_followers():
    epochs = dict(EPOCHS)
    view = view_of(epochs=epochs)
    ack(view, 1, 0, start=7)
    ack(view, 2, 0, start=3)
    assert view.low_watermark == 3
    del epochs[2]
    assert view.low_watermark == 7
