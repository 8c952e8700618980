"""The automaton against a model that knows every record by itself, over whatever may happen to both."""

import itertools
from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from ottla.errors import KafkaError
from ottla.share.core.acknowledging import Acknowledgement, Kind
from ottla.share.core.in_flight import Span
from ottla.share.core.messages import Delivery, ShareState, StateBatch
from ottla.share.core.partition import Found, SharePartition

RECORDS_MAX, DELIVERIES_MAX, LOCK_S = 12, 3, 10.0
LOG_END = 60
MEMBERS = ("ana", "ben", "cleo")
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = Delivery
FINAL = (ACKNOWLEDGED, ARCHIVED)


@dataclass(frozen=True)
class Record:
    state: Delivery = AVAILABLE
    count: int = 0
    member: str = ""
    deadline: float = 0.0
    before: "Record | None" = None  # to go back to; while it is set, nobody may touch the record


class Model:
    """One entry for each offset, and rules that are one line each."""

    def __init__(self) -> None:
        self.records = {offset: Record() for offset in range(LOG_END)}

    def taken(self, record: Record, member: str, deadline: float) -> Record:
        return Record(ACQUIRED, record.count + 1, member, deadline)

    def given_back(self, record: Record) -> Record:
        return Record(ARCHIVED if record.count >= DELIVERIES_MAX else AVAILABLE, record.count)

    def after(self, record: Record, kind: Kind) -> Record:
        if kind is Kind.RELEASE:
            return replace(self.given_back(record), before=record)
        return Record(ACKNOWLEDGED if kind is Kind.ACCEPT else ARCHIVED, record.count, before=record)


class Sharing(RuleBasedStateMachine):
    @initialize(cuts=st.sets(st.integers(1, LOG_END - 1)), hidden=st.sets(st.integers(0, 20)))
    def begin(self, cuts: set[int], hidden: set[int]) -> None:
        edges = [0, *sorted(cuts), LOG_END]
        spans = list(itertools.pairwise(edges))
        self.log = [Found(first, end - 1, at not in hidden) for at, (first, end) in enumerate(spans)]
        self.hidden = {
            offset for one in self.log if not one.is_for_consumers for offset in range(one.first, one.last + 1)
        }
        self.model = Model()
        self.now = 0.0
        self.log_start = 0
        self.changes: list[list[Span]] = []
        self.notes: list[Span] = []
        self.kept_start, self.kept = 0, {offset: Record() for offset in range(LOG_END)}
        self.told: set[int] = set()
        self.share = self._loaded()

    def _loaded(self) -> SharePartition:
        batches = [StateBatch(at, at, int(r.state), r.count) for at, r in self.kept.items() if r != Record()]
        state = ShareState(0, self.kept_start, tuple(one for one in batches if one.first >= self.kept_start))
        return SharePartition(state, records_max=RECORDS_MAX, deliveries_max=DELIVERIES_MAX)

    # out

    @rule(member=st.sampled_from(MEMBERS), wish=st.integers(1, 20), chunk=st.integers(1, 10), size=st.integers(1, 9))
    def acquire(self, member: str, wish: int, chunk: int, size: int) -> None:
        begin = self.share.next_offset
        if begin is None or begin >= LOG_END:
            return
        found = [one for one in self.log if one.last >= begin][:chunk]
        start, deadline = self.share.start, self.now + LOCK_S
        acquired = self.share.acquire(member, found, begin=begin, records_max=wish, batch_size=size, deadline=deadline)
        taken = {offset: span.deliveries for span in acquired for offset in range(span.first, span.last + 1)}
        assert sum(span.last - span.first + 1 for span in acquired) == len(taken), "each record once"
        for offset, count in taken.items():
            record = self.model.records[offset]
            assert record.state == AVAILABLE and record.before is None and offset not in self.told
            assert offset >= self.log_start and offset not in self.hidden
            self.model.records[offset] = self.model.taken(record, member, deadline)
            assert self.model.records[offset].count == count
        assert taken or self.share.start > start or self.share.next_offset != begin, "something happened"
        for offset in range(begin, self.share.end):
            if offset in self.hidden and self.model.records[offset].state == AVAILABLE and self._seen(offset, found):
                self.model.records[offset] = Record(ARCHIVED, self.model.records[offset].count)

    def _seen(self, offset: int, found: list[Found]) -> bool:
        """A hidden record may have been passed over; the automaton says whether it was."""
        written = self.share.to_write([(offset, offset)])
        return offset < written[0] or written[1][0].delivery == ARCHIVED

    # back

    @precondition(lambda self: any(r.state == ACQUIRED for r in self.model.records.values()))
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        held = sorted(at for at, r in self.model.records.items() if r.state == ACQUIRED)
        first = data.draw(st.sampled_from(held))
        last = data.draw(st.integers(first, min(first + 6, LOG_END - 1)))
        member = self.model.records[first].member if data.draw(st.integers(0, 5)) else "nobody"
        kinds = data.draw(st.lists(st.sampled_from(Kind), min_size=last - first + 1, max_size=last - first + 1))
        given = [(at, self.model.records[at], kind) for at, kind in zip(range(first, last + 1), kinds, strict=True)]
        allowed = all((r.state == ACQUIRED and r.member == member) or at < self.share.start for at, r, _ in given)
        try:
            spans = self.share.acknowledge(member, [Acknowledgement(first, last, kinds)])
        except KafkaError:
            assert not allowed or last >= self.share.end
            return
        assert allowed
        for at, record, kind in given:
            if at >= self.share.start:
                self.model.records[at] = self.model.after(record, kind)
        self.changes.append(list(spans))

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        held = [at for at, r in self.model.records.items() if r.state == ACQUIRED and r.member == member]
        spans = self.share.release(member)
        assert [at for first, last in spans for at in range(first, last + 1)] == held
        for at in held:
            record = self.model.records[at]
            self.model.records[at] = Record(AVAILABLE, record.count - 1, before=record)
        self.changes.append(list(spans))

    @rule(seconds=st.sampled_from([1.0, 4.0, 10.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        spans = self.share.expire(self.now)
        over = [at for at, r in self.model.records.items() if r.state == ACQUIRED and r.deadline <= self.now]
        assert [at for first, last in spans for at in range(first, last + 1)] == over
        for at in over:
            self.model.records[at] = self.model.given_back(self.model.records[at])
        self.notes += spans

    @rule(by=st.integers(1, 8))
    def log_begins_later(self, by: int) -> None:
        self.log_start = min(max(self.log_start, self.share.start) + by, LOG_END)
        self.share.begin_at(self.log_start)
        for at in range(self.log_start):
            self.model.records[at] = Record(ARCHIVED)

    # the persister

    @rule(fails=st.booleans(), arrives=st.booleans())
    def write(self, fails: bool, arrives: bool) -> None:
        """One write of everything that waits. Of one that fails, nobody knows whether it arrived."""
        changes = [span for spans in self.changes for span in spans]
        start, batches = self.share.to_write([*changes, *self.notes])
        if not fails or arrives:
            self._keep(start, batches)
        for at, record in self.model.records.items():
            if record.before is not None:
                self.model.records[at] = record.before if fails else replace(record, before=None)
                if not fails and record.state in FINAL:
                    self.told.add(at)
        (self.share.not_written if fails else self.share.written)(changes)
        self.changes, self.notes = [], []
        if fails:
            self.time_passes(0.0)

    def _keep(self, start: int, batches: list[StateBatch]) -> None:
        """As the coordinator does: what was delivered more often wins, and of equals what is more final."""
        self.kept_start = max(self.kept_start, start)
        covered = [at for one in batches for at in range(one.first, one.last + 1)]
        assert len(covered) == len(set(covered)), "nothing is said twice"
        for one in batches:
            assert one.delivery != ACQUIRED and one.count >= 0 and one.first >= start
            for at in range(one.first, one.last + 1):
                new, old = Record(Delivery(one.delivery), one.count), self.kept[at]
                self.kept[at] = max(new, old, key=lambda r: (r.count, r.state))

    @rule()
    def another_leader(self) -> None:
        """What was told holds; what was acquired is available; the rest as it was written last."""
        self.share = self._loaded()
        self.share.begin_at(self.log_start)
        self.changes, self.notes = [], []
        for at in self.model.records:
            gone = at < max(self.kept_start, self.log_start)
            self.model.records[at] = Record(ARCHIVED) if gone else self.kept[at]

    # always

    @invariant()
    def limits_hold(self) -> None:
        if not hasattr(self, "share"):
            return
        held = [at for at, r in self.model.records.items() if r.state == ACQUIRED]
        assert self.share.end - self.share.start <= max(RECORDS_MAX, 0)
        assert all(self.share.start <= at < self.share.end for at in held)
        assert all(r.count <= DELIVERIES_MAX for r in self.model.records.values())

    @invariant()
    def nothing_is_lost(self) -> None:
        """Whatever is before the start is done with, for good."""
        if hasattr(self, "share"):
            for at in range(self.share.start):
                record = self.model.records[at]
                assert record.state in FINAL and record.before is None, (at, record)

    @invariant()
    def what_is_available_is_found(self) -> None:
        if hasattr(self, "share"):
            waiting = (at for at, r in self.model.records.items() if r.state == AVAILABLE and r.before is None)
            first = next(waiting, LOG_END)
            offset = self.share.next_offset
            full = self.share.end - self.share.start >= RECORDS_MAX
            assert offset == first if offset is not None else (full and first >= self.share.end)


TestSharing = Sharing.TestCase
TestSharing.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
