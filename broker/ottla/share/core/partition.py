"""One share-partition: which of its records are available, acquired, acknowledged or archived. Pure.

            acquire                accept
AVAILABLE ─────────▶ ACQUIRED ─────────────────▶ ACKNOWLEDGED
    ▲                   │ │
    └───────────────────┘ └──────────────────────▶ ARCHIVED
  release, expired lock     reject, gap, delivered too often

Acknowledgements and releases are in force at once for whoever comes next, but are answered and final only when they are
written: `written` says so, `not_written` takes them back. Locks that expired need no such care: if their record is
lost, the next leader merely counts one delivery less.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.errors import Code, KafkaError
from ottla.share.core.acknowledging import Acknowledgement, Kind, Piece, pieces
from ottla.share.core.in_flight import Fate, InFlight, Run, Span
from ottla.share.core.messages import Delivery, ShareState, StateBatch

__all__ = ["Acquired", "Found", "SharePartition"]


class Found(NamedTuple):
    """A batch as it lies in the log. One that holds nothing for consumers (markers, aborted records) is passed over."""

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
        """Where to read what can be acquired next; None while too many records are under way."""
        available = self._window.first_available
        if available is not None:
            return available
        return self.end if len(self._window) < self._records_max else None

    # out

    def acquire(
        self, member: str, found: Sequence[Found], *, begin: int, records_max: int, batch_size: int, deadline: float
    ) -> list[Acquired]:
        """Lock what is available in the batches that were read from `begin` on, for `member` until `deadline`.

        Whole batches, until there are `records_max` records; so it may be more. Offsets between batches have no
        records any longer, and are archived.
        """
        acquired: list[Acquired] = []
        count, position = 0, max(begin, self.start)
        for batch in found:
            if batch.last < position:
                continue
            if count >= records_max:
                break
            self._reach(position, batch)
            self._archive(position, batch.first - 1)
            span = max(position, batch.first), batch.last
            if batch.is_for_consumers:
                count += self._take(acquired, span, Fate(Delivery.ACQUIRED, 0, member, deadline), batch_size)
            else:
                self._archive(*span)
            position = batch.last + 1
        self._window.settle()
        return acquired

    def _reach(self, position: int, batch: Found) -> None:
        """Let the window reach over this batch, as far as it may."""
        window = self._window
        window.advance()
        if not window.runs and position <= window.start < batch.first:
            window.begin_at(batch.first)  # however wide the hole is, no record is under way in it
        window.extend(min(batch.last + 1, window.start + self._records_max))

    def _take(self, acquired: list[Acquired], span: Span, lock: Fate, batch_size: int) -> int:
        taken = 0
        for run in [run for run in self._window.cut(*span) if run.is_available]:
            run.fate = lock._replace(deliveries=run.fate.deliveries + 1)
            taken += run.last - run.first + 1
            before = acquired[-1] if acquired else None
            if (
                before is not None
                and (before.last + 1, before.deliveries) == (run.first, run.fate.deliveries)
                and before.last - before.first + 1 < batch_size
            ):
                acquired[-1] = before._replace(last=run.last)
            else:
                acquired.append(Acquired(run.first, run.last, run.fate.deliveries))
        return taken

    def _archive(self, first: int, last: int) -> None:
        """Records that nobody can have, unless somebody has them already."""
        if first <= last:
            for run in self._window.cut(first, last):
                if run.is_available:
                    run.fate = Fate(Delivery.ARCHIVED, run.fate.deliveries)

    # back

    def acknowledge(self, member: str, acknowledgements: Sequence[Acknowledgement]) -> list[Span]:
        """What must be written. KafkaError, and nothing is changed: INVALID_REQUEST, INVALID_RECORD_STATE.

        Records that are done with already, because the log was cut, need no acknowledgement and do no harm.
        """
        given = [piece for piece in pieces(acknowledgements) if piece.last >= self.start]
        for piece in given:
            self._check(member, piece)
        for piece in given:
            for run in self._window.cut(max(piece.first, self.start), piece.last):
                self._change(run, self._fate_after(run.fate, piece.kind))
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

    def _fate_after(self, fate: Fate, kind: Kind) -> Fate:
        if kind is Kind.ACCEPT:
            return Fate(Delivery.ACKNOWLEDGED, fate.deliveries)
        return self._given_back(fate) if kind is Kind.RELEASE else Fate(Delivery.ARCHIVED, fate.deliveries)

    def _given_back(self, fate: Fate) -> Fate:
        too_often = fate.deliveries >= self._deliveries_max
        return Fate(Delivery.ARCHIVED if too_often else Delivery.AVAILABLE, fate.deliveries)

    def release(self, member: str) -> list[Span]:
        """The member is gone. What it holds counts as not delivered; this must be written, too."""
        held = [run for run in self._window.runs if run.is_held_by(member)]
        for run in held:
            self._change(run, Fate(Delivery.AVAILABLE, run.fate.deliveries - 1))
        return [(run.first, run.last) for run in held]

    @staticmethod
    def _change(run: Run, fate: Fate) -> None:
        run.before, run.fate = run.fate, fate

    def expire(self, now: float) -> list[Span]:
        """Locks whose time is over; available at once, or archived. What should be written."""
        over = [run for run in self._window.runs if run.before is None and run.fate.deadline <= now]
        for run in over:
            run.fate = self._given_back(run.fate)
        spans = [(run.first, run.last) for run in over]
        self._window.settle()
        return spans

    def begin_at(self, offset: int) -> None:
        """The log begins there now."""
        self._window.begin_at(offset)

    # what is written

    def to_write(self, spans: Iterable[Span]) -> tuple[int, list[StateBatch]]:
        """The start and the batches. All changes that are neither written nor taken back must be among `spans`."""
        start = self._window.start_if_written
        return start, self._window.batches([(max(first, start), last) for first, last in spans if last >= start])

    def written(self, spans: Iterable[Span]) -> None:
        """Of acknowledgements and releases, each of which is settled once, by this or by `not_written`."""
        for run in self._awaiting(spans):
            run.before = None
        self._window.settle()

    def not_written(self, spans: Iterable[Span]) -> None:
        """Back to the locks as they were; those whose time is over by now expire when locks are next checked."""
        for run in self._awaiting(spans):
            assert run.before is not None
            run.fate, run.before = run.before, None
        self._window.settle()

    def _awaiting(self, spans: Iterable[Span]) -> list[Run]:
        return [run for span in spans for run in self._window.cut(*span) if run.before is not None]
