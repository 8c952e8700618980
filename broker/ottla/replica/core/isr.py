"""The leader's view of one partition's replicas: the in-sync set, and the leader's high watermark moves here. Pure.

Invariant: the high watermark never decreases, and never exceeds the log end of any replica that counts. These count:

- the members of the in-sync set;
- while a change of the set is in flight, also the members it would have then: either set may be in force;
- followers that have caught up and may join: otherwise a busy leader would stay ahead of them for ever.

The high watermark does not move while the in-sync set is smaller than `min.insync.replicas` (KIP-966).
"""

from collections.abc import Callable, Iterable

__all__ = ["NO_EPOCH", "EpochOf", "FollowerView", "LeaderView"]

NO_EPOCH = -1
NEVER = float("-inf")

EpochOf = Callable[[int], int | None]


def _no_brokers(broker_id: int) -> int | None:
    return None


class FollowerView:
    """The leader's knowledge of one follower; -1 means unknown."""

    __slots__ = ("_mark_at", "_mark_offset", "broker_epoch", "caught_up_at", "end", "id", "start")

    def __init__(self, broker_id: int, *, caught_up_at: float) -> None:
        self.id = broker_id
        self.end = -1
        self.start = -1
        self.broker_epoch = NO_EPOCH
        self.caught_up_at = caught_up_at
        self._mark_offset = 0
        self._mark_at = NEVER

    def note(self, *, end: int, start: int, broker_epoch: int, leader_end: int, now: float) -> None:
        """The follower was caught up when the leader's end was what the follower's end is now."""
        self.end, self.start, self.broker_epoch = end, start, broker_epoch
        if end >= leader_end:
            self.caught_up_at = now
        elif end < self._mark_offset:
            return
        else:
            self.caught_up_at = max(self.caught_up_at, self._mark_at)
        self._mark_offset, self._mark_at = leader_end, now

    def has_caught_up(self, *, leader_end: int, now: float, lag_max_s: float) -> bool:
        return self.end >= leader_end or now - self.caught_up_at <= lag_max_s


class LeaderView:
    """`epoch_of` returns a broker's epoch; None if it is fenced, shutting down or unknown (KIP-903)."""

    def __init__(
        self,
        *,
        node_id: int,
        replicas: Iterable[int],
        isr: Iterable[int],
        isr_size_min: int,
        high_watermark: int,
        end: int,
        now: float = 0.0,
        lag_max_s: float = 30.0,
        epoch_of: EpochOf = _no_brokers,
    ) -> None:
        self._node_id = node_id
        self._lag_max_s = lag_max_s
        self._epoch_of = epoch_of
        self._end = end
        self._followers: dict[int, FollowerView] = {}
        self._others: tuple[FollowerView, ...] = ()
        self.epoch_start = end
        self.high_watermark = high_watermark
        self.isr_size_min = isr_size_min
        self.isr = frozenset(isr)
        self.pending: frozenset[int] | None = None
        self.maximal = self.isr  # with the members of a pending set; kept up by _recount
        self._set_replicas(replicas, now=now)
        self.refresh(now)

    def _set_replicas(self, replicas: Iterable[int], *, now: float) -> None:
        """Remaining followers keep their view; a new member of the in-sync set counts as caught up now."""
        known = self._followers
        self._followers = {
            each: known.get(each) or FollowerView(each, caught_up_at=now if each in self.isr else NEVER)
            for each in sorted(replicas)
            if each != self._node_id
        }

    def require_isr_size(self, isr_size_min: int) -> None:
        """The topic's min.insync.replicas changed."""
        self.isr_size_min = isr_size_min

    @property
    def enough_in_sync(self) -> bool:
        """A minimum above the replication factor requires all replicas."""
        return len(self.isr) >= self.isr_size_min or len(self.isr) > len(self._followers)

    @property
    def is_settled(self) -> bool:
        """The high watermark has reached everything that was committed before this leader's epoch (KIP-207)."""
        return self.high_watermark >= self.epoch_start

    @property
    def low_watermark(self) -> int:
        """The lowest log start of all followers whose broker is alive."""
        alive = (each.start for each in self._followers.values() if self._epoch_of(each.id) is not None)
        return min(alive, default=2**63 - 1)

    @property
    def is_alone(self) -> bool:
        """The partition has one replica."""
        return not self._followers

    @property
    def is_complete(self) -> bool:
        """Every replica is in sync, or being added."""
        return len(self.maximal) > len(self._followers)

    @property
    def followers_in_sync(self) -> list[FollowerView]:
        return [each for each in self._followers.values() if each.id in self.isr]

    def follower(self, replica: int) -> FollowerView | None:
        return self._followers.get(replica)

    # the high watermark

    def advance(self, end: int) -> bool:
        """The leader's own log end. True when the high watermark moved."""
        previous, self._end = self._end, end
        if self._others:
            # If the leader was ahead already, another replica holds the watermark back.
            return previous <= self.high_watermark and self._raise()
        if end <= self.high_watermark or not self.enough_in_sync:
            return False
        self.high_watermark = end
        return True

    def acked(self, replica: int, *, end: int, start: int, broker_epoch: int, now: float) -> bool:
        """A follower acknowledged up to `end`. True when the high watermark moved."""
        follower = self._followers.get(replica)
        if follower is None:
            return False
        follower.note(end=end, start=start, broker_epoch=broker_epoch, leader_end=self._end, now=now)
        if replica not in self.maximal:
            self._recount(now)
        return self._raise()

    def _raise(self) -> bool:
        lowest = self._end
        for other in self._others:
            lowest = min(lowest, other.end)
        if lowest <= self.high_watermark or not self.enough_in_sync:
            return False
        self.high_watermark = lowest
        return True

    def _recount(self, now: float) -> None:
        self.maximal = maximal = self.isr if self.pending is None else self.isr | self.pending
        self._others = tuple(
            each for each in self._followers.values() if each.id in maximal or self._is_joining(each, now)
        )

    def _is_joining(self, follower: FollowerView, now: float) -> bool:
        return self._is_eligible(follower) and self._has_caught_up(follower, now)

    def _has_caught_up(self, follower: FollowerView, now: float) -> bool:
        return follower.has_caught_up(leader_end=self._end, now=now, lag_max_s=self._lag_max_s)

    def _is_eligible(self, follower: FollowerView) -> bool:
        epoch = self._epoch_of(follower.id)
        return epoch is not None and epoch == follower.broker_epoch

    # the in-sync set

    def wanted_isr(self, now: float) -> frozenset[int] | None:
        """The in-sync set to request from the controller; None if the current one is right or a change is in flight."""
        if self.pending is not None:
            return None
        wanted, committed_end = {self._node_id}, max(self.high_watermark, self.epoch_start)
        for follower in self._followers.values():
            # The same rule for others: a follower that would be removed at once is not added.
            fits = self._has_caught_up(follower, now)
            if follower.id not in self.isr:
                fits = fits and follower.end >= committed_end and self._is_eligible(follower)
            if fits:
                wanted.add(follower.id)
        return frozenset(wanted) if wanted != self.isr else None

    def propose(self, isr: frozenset[int], *, now: float) -> list[tuple[int, int]]:
        """From now on both sets count. Returns the members with the broker epochs they were seen with; the leader's is
        -1."""
        self.pending = isr
        self._recount(now)
        epochs = ((each, self._followers[each].broker_epoch) for each in sorted(isr) if each != self._node_id)
        return [(self._node_id, NO_EPOCH), *epochs]

    def replace(self, *, replicas: Iterable[int], isr: Iterable[int], now: float) -> bool:
        """A new state was committed. True when that moved the high watermark."""
        self.isr, self.pending = frozenset(isr), None
        self._set_replicas(replicas, now=now)
        return self.refresh(now)

    def withdraw(self, *, now: float) -> bool:
        """The controller refused the change. True when that moved the high watermark."""
        self.pending = None
        return self.refresh(now)

    def refresh(self, now: float) -> bool:
        """Time passed, or the set of live brokers changed. True when that moved the high watermark."""
        self._recount(now)
        return self._raise()
