"""Leader's view of one other member. Pure. Invariant: 0 <= match < next.

PROBE      one message at a time, until the index where the logs agree is known
REPLICATE  messages are pipelined, up to a limit in flight
SNAPSHOT   the member needs compacted entries; entries wait until it has installed the snapshot
"""

import math
from collections import deque
from enum import Enum

from ottla.raft.core.messages import Member

__all__ = ["Progress", "ProgressState"]

DOUBTS_MAX = 2  # a refusal of acknowledged entries may be an old one that arrives late


class ProgressState(Enum):
    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


class Progress:
    __slots__ = (
        "_doubts",
        "_inflight",
        "_inflight_max",
        "_probe_sent",
        "caught_up_at",
        "commit_sent",
        "forgot",
        "heard_at",
        "match",
        "member",
        "next",
        "snapshot_index",
        "snapshot_sent_at",
        "state",
    )

    def __init__(self, member: Member, *, next_index: int, inflight_max: int) -> None:
        self.member = member
        self.match = 0
        self.next = next_index
        self.state = ProgressState.PROBE
        # Times of the monotonic clock; never yet.
        self.heard_at = self.caught_up_at = -math.inf
        self.commit_sent = 0
        self.snapshot_index = 0
        self.snapshot_sent_at = -math.inf
        self.forgot = 0  # index of the last acknowledged entry, if the member has lost acknowledged entries
        self._doubts = 0
        self._probe_sent = False
        self._inflight: deque[int] = deque()
        self._inflight_max = inflight_max

    @property
    def may_send(self) -> bool:
        if self.state is ProgressState.PROBE:
            return not self._probe_sent
        return self.state is ProgressState.REPLICATE and len(self._inflight) < self._inflight_max

    def sent(self, last_index: int) -> None:
        """Entries up to `last_index` are in flight; `next - 1` when the message had none."""
        if self.state is ProgressState.PROBE:
            self._probe_sent = True
        elif last_index >= self.next:
            self.next = last_index + 1
            self._inflight.append(last_index)

    def sent_commit(self, index: int) -> None:
        """The last message carried this commit index."""
        self.commit_sent = index

    def heard(self, now: float) -> None:
        self.heard_at = now

    def caught_up(self, now: float) -> None:
        """The member had all committed entries at this time."""
        self.caught_up_at = now

    def set_directory(self, member: Member) -> None:
        """The directory of a seed voter became known."""
        self.member = member

    def sent_snapshot(self, index: int, now: float) -> None:
        self.state = ProgressState.SNAPSHOT
        self.snapshot_index, self.snapshot_sent_at = index, now

    def accepted(self, index: int) -> bool:
        """The member has everything up to `index`. Returns whether that is new."""
        self._doubts = 0
        is_news = index > self.match
        self.match = max(self.match, index)
        self.next = max(self.next, index + 1)
        while self._inflight and self._inflight[0] <= index:
            self._inflight.popleft()
        if self.state is ProgressState.PROBE or (
            self.state is ProgressState.SNAPSHOT and self.match >= self.snapshot_index
        ):
            self._replicate()
        return is_news

    def refused(self, index: int, resume_after: int) -> bool:
        """The member lacks the entry before `index`. Returns whether that changes what to send next."""
        if self.state is ProgressState.REPLICATE:
            if index <= self.match:
                return False
            self._probe(self.match + 1)
            return True
        if self.state is ProgressState.SNAPSHOT or self.next - 1 != index:
            return False
        if index <= self.match:
            return self._has_lost_acknowledged(resume_after)
        self._probe(max(min(index, resume_after + 1), self.match + 1))
        return True

    def _has_lost_acknowledged(self, resume_after: int) -> bool:
        """Decided at most once per heartbeat: otherwise the two would exchange messages without pause."""
        if self._doubts < DOUBTS_MAX:
            self._doubts += 1
            return False
        self.forgot = max(self.forgot, self.match)
        self.match = min(self.match, resume_after)
        self._doubts = 0
        self._probe(self.match + 1)
        return True

    def probe_again(self) -> None:
        """An answer may have been lost: allow one more message."""
        self._probe_sent = False

    def restart(self) -> None:
        """The snapshot may have been lost: find out where the member is."""
        self._probe(self.match + 1)

    def _probe(self, next_index: int) -> None:
        self.state = ProgressState.PROBE
        self.next = next_index
        self._probe_sent = False
        self._inflight.clear()

    def _replicate(self) -> None:
        self.state = ProgressState.REPLICATE
        self.next = self.match + 1
        self._inflight.clear()
