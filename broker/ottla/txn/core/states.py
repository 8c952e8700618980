"""The states of a transactional id and the table of their transitions. Pure.

        ADD                  COMMIT                MARKED
Empty ────────► Ongoing ─────────────► PrepareCommit ────► CompleteCommit ─┐
  ▲                │ ABORT, FENCE                                          │ ADD → Ongoing
  │                └─────────────────► PrepareAbort ─────► CompleteAbort ──┤ EXPIRE → Dead
  └───────────────────────── INIT ─────────────────────────────────────────┘
"""

from enum import Enum, IntEnum, auto

__all__ = ["ENDING", "NEXT", "SETTLED", "Event", "State"]


class State(IntEnum):
    """The values are those in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's name."""
        return self.name.title().replace("_", "")


class Event(Enum):
    INIT = auto()  # InitProducerId with this transactional id
    ADD = auto()  # a partition is added to the transaction
    COMMIT = auto()
    ABORT = auto()
    ABORT_NOTHING = auto()  # with epochs per transaction: an abort of an empty transaction, which bumps the epoch
    FENCE = auto()  # another producer, or a time-out: the producer is fenced and its transaction aborted
    MARKED = auto()  # every partition has its marker
    EXPIRE = auto()


S, E = State, Event
SETTLED = frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT})
ENDING = frozenset({S.PREPARE_COMMIT, S.PREPARE_ABORT})

NEXT: dict[tuple[State, Event], State] = {
    (S.EMPTY, E.INIT): S.EMPTY,
    (S.EMPTY, E.ADD): S.ONGOING,
    (S.EMPTY, E.ABORT_NOTHING): S.PREPARE_ABORT,
    (S.EMPTY, E.EXPIRE): S.DEAD,
    (S.ONGOING, E.ADD): S.ONGOING,
    (S.ONGOING, E.COMMIT): S.PREPARE_COMMIT,
    (S.ONGOING, E.ABORT): S.PREPARE_ABORT,
    (S.ONGOING, E.FENCE): S.PREPARE_EPOCH_FENCE,
    (S.PREPARE_EPOCH_FENCE, E.ABORT): S.PREPARE_ABORT,  # immediately: PrepareEpochFence is never written
    (S.PREPARE_COMMIT, E.MARKED): S.COMPLETE_COMMIT,
    (S.PREPARE_ABORT, E.MARKED): S.COMPLETE_ABORT,
    (S.COMPLETE_COMMIT, E.INIT): S.EMPTY,
    (S.COMPLETE_COMMIT, E.ADD): S.ONGOING,
    (S.COMPLETE_COMMIT, E.ABORT_NOTHING): S.PREPARE_ABORT,
    (S.COMPLETE_COMMIT, E.EXPIRE): S.DEAD,
    (S.COMPLETE_ABORT, E.INIT): S.EMPTY,
    (S.COMPLETE_ABORT, E.ADD): S.ONGOING,
    (S.COMPLETE_ABORT, E.ABORT_NOTHING): S.PREPARE_ABORT,
    (S.COMPLETE_ABORT, E.EXPIRE): S.DEAD,
}
