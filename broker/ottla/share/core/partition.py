"""One share-partition: which of its records are available, acquired, acknowledged or archived. Pure.

            acquire                accept
AVAILABLE ─────────▶ ACQUIRED ─────────────────▶ ACKNOWLEDGED
    ▲                   │ │
    └───────────────────┘ └──────────────────────▶ ARCHIVED
  release, expired lock     reject, gap, delivered too often

Acknowledgements and releases apply at once, but are answered and final only when they are written: `written` confirms
them, `not_written` rolls them back. An expired lock is never rolled back: if its record is lost, the next leader counts
one delivery less.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.errors import Code, KafkaError
from ottla.share.core.acknowledging import Acknowledgement, Kind, Piece, pieces
from ottla.share.core.in_flight import InFlight, RecordState, Run, Span
from ottla.share.core.messages import Delivery, ShareState, StateBatch

__all__ = ["Acquired", "Found", "SharePartition"]


class Found(NamedTuple):
    """A batch of the log. A batch without records for consumers (markers, aborted records) is skipped."""

    first: int
    last: int
    is_for_consumers: bool = True


class Acquired(NamedTuple):
    first: int
    last: int
    deliveries: int


class SharePartition:
    """Invariant: at most `records_max` records lie between its start and its end."""

    def __init__(self, state: ShareState, *, records_max: int, deliveries_max: int) -> None:
        self.state_epoch = state.state_epoch
        self._window = InFlight.recover(state.start, state.batches)
        self._records_max = records_max
        self._deliveries_max = deliveries_max

    @property
    def start(self) -> int:
        return self._window.start

    @property
    def end(self) -> int:
        return self._window.end

    @property
    def next_offset(self) -> int | None:
        """The offset to read next; None while too many records are in flight."""
        available = self._window.first_available
        if available is not None:
            return available
        return self.end if len(self._window) < self._records_max else None

    # acquiring

    def acquire(
        self, member: str, found: Iterable[Found], *, begin: int, records_max: int, batch_size: int, deadline: float
    ) -> list[Acquired]:
        """Lock the available records of the batches read from `begin` on, for `member` until `deadline`.

        Takes whole batches until it has `records_max` records, so it may take more. Offsets between batches have no
        records (compaction) and are archived.
        """
        acquired: list[Acquired] = []
        count, position = 0, max(begin, self.start)
        for batch in found:
            if batch.last < position:
                continue
            if count >= records_max:
                break
            self._extend_window(position, batch)
            self._archive(position, batch.first - 1)
            if batch.first >= self._window.end:
                break  # too many records are in flight; `found` is read as far as it is needed
            span = max(position, batch.first), batch.last
            if batch.is_for_consumers:
                count += self._take(acquired, span, RecordState(Delivery.ACQUIRED, 0, member, deadline), batch_size)
            else:
                self._archive(*span)
            position = batch.last + 1
        self._window.settle()
        return acquired

    def _extend_window(self, position: int, batch: Found) -> None:
        """Extend the window over this batch, up to the limit of in-flight records."""
        window = self._window
        window.advance()
        if not window.runs and position <= window.start < batch.first:
            window.begin_at(batch.first)  # the gap may be wide, but no record in it is in flight
        window.extend(min(batch.last + 1, window.start + self._records_max))

    def _take(self, acquired: list[Acquired], span: Span, lock: RecordState, batch_size: int) -> int:
        taken = 0
        for run in [run for run in self._window.cut(*span) if run.is_available]:
            run.record_state = lock._replace(deliveries=run.record_state.deliveries + 1)
            taken += run.last - run.first + 1
            before = acquired[-1] if acquired else None
            if (
                before is not None
                and (before.last + 1, before.deliveries) == (run.first, run.record_state.deliveries)
                and before.last - before.first + 1 < batch_size
            ):
                acquired[-1] = before._replace(last=run.last)
            else:
                acquired.append(Acquired(run.first, run.last, run.record_state.deliveries))
        return taken

    def _archive(self, first: int, last: int) -> None:
        """Archive records that are not for consumers, except acquired ones."""
        if first <= last:
            for run in self._window.cut(first, last):
                if run.is_available:
                    run.record_state = RecordState(Delivery.ARCHIVED, run.record_state.deliveries)

    # acknowledging

    def acknowledge(self, member: str, acknowledgements: Sequence[Acknowledgement]) -> list[Span]:
        """Returns the spans to write. KafkaError without any change: INVALID_REQUEST, INVALID_RECORD_STATE.

        Acknowledgements of records before the window, which the log has lost, are ignored.
        """
        given = [piece for piece in pieces(acknowledgements) if piece.last >= self.start]
        for piece in given:
            self._check(member, piece)
        for piece in given:
            for run in self._window.cut(max(piece.first, self.start), piece.last):
                self._change(run, self._state_after(run.record_state, piece.kind))
        return [(piece.first, piece.last) for piece in given]

    def _check(self, member: str, piece: Piece) -> None:
        if piece.last >= self.end:
            raise KafkaError(
                Code.invalid_request, f"offsets up to {piece.last} were not acquired, only to {self.end - 1}"
            )
        for run in self._window.overlapping(piece.first, piece.last):
            if not run.is_held_by(member):
                raise KafkaError(
                    Code.invalid_record_state,
                    f"of offsets {piece.first} to {piece.last}, {run.first} to {run.last} are not acquired by {member}",
                )

    def _state_after(self, record_state: RecordState, kind: Kind) -> RecordState:
        if kind is Kind.ACCEPT:
            return RecordState(Delivery.ACKNOWLEDGED, record_state.deliveries)
        return (
            self._released(record_state)
            if kind is Kind.RELEASE
            else RecordState(Delivery.ARCHIVED, record_state.deliveries)
        )

    def _released(self, record_state: RecordState) -> RecordState:
        too_often = record_state.deliveries >= self._deliveries_max
        return RecordState(Delivery.ARCHIVED if too_often else Delivery.AVAILABLE, record_state.deliveries)

    def release(self, member: str) -> list[Span]:
        """The member has left: release its records without counting a delivery. Returns the spans to write."""
        held = [run for run in self._window.runs if run.is_held_by(member)]
        for run in held:
            self._change(run, RecordState(Delivery.AVAILABLE, run.record_state.deliveries - 1))
        return [(run.first, run.last) for run in held]

    @staticmethod
    def _change(run: Run, record_state: RecordState) -> None:
        run.before, run.record_state = run.record_state, record_state

    def expire(self, now: float) -> list[Span]:
        """Release expired locks: records become available, or are archived. Returns the spans to write."""
        over = [run for run in self._window.runs if run.before is None and run.record_state.deadline <= now]
        for run in over:
            run.record_state = self._released(run.record_state)
        spans = [(run.first, run.last) for run in over]
        self._window.settle()
        return spans

    def begin_at(self, offset: int) -> None:
        """The log now starts at this offset."""
        self._window.begin_at(offset)

    # writing

    def to_write(self, spans: Iterable[Span]) -> tuple[int, list[StateBatch]]:
        """The start and the batches to write. `spans` must include all changes that are neither written nor rolled
        back."""
        start = self._window.start_if_written
        return start, self._window.batches([(max(first, start), last) for first, last in spans if last >= start])

    def written(self, spans: Iterable[Span]) -> None:
        """Confirm acknowledgements and releases. Each is settled once, by this or by `not_written`."""
        for run in self._awaiting(spans):
            run.before = None
        self._window.settle()

    def not_written(self, spans: Iterable[Span]) -> None:
        """Restore the locks; those that have expired by now are released when locks are next checked."""
        for run in self._awaiting(spans):
            assert run.before is not None
            run.record_state, run.before = run.before, None
        self._window.settle()

    def _awaiting(self, spans: Iterable[Span]) -> list[Run]:
        return [run for span in spans for run in self._window.cut(*span) if run.before is not None]
