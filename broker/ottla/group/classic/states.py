"""The states of a classic group and the table of their transitions. Pure.

         member joined, left or changed           all members joined or time is up
Empty ─────────────────────────────▶ Preparing ─────────────────────────────▶ Completing
  ▲                                  Rebalance                                 Rebalance
  │             no member joined        │ ▲ ▲   member joined, left or changed    │  │
  └─────────────────────────────────────┘ │ └─────────────────────────────────────┘  │
  │ deleted                               │ member joined, left or changed            │ assignment is committed
  ▼                                       │                                           ▼
Dead                                      └────────────────────────────────────── Stable
"""

from enum import Enum, auto
from types import MappingProxyType

__all__ = ["NEXT", "Event", "State"]


class State(Enum):
    """The values are sent to clients."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
    REBALANCE = auto()  # a member joined, left or changed
    ALL_JOINED = auto()  # all members have joined, or the time to do so is over
    NONE_JOINED = auto()  # no member joined
    ASSIGNED = auto()  # the leader's assignment is committed
    DELETED = auto()


NEXT = MappingProxyType(
    {
        (State.EMPTY, Event.REBALANCE): State.PREPARING,
        (State.STABLE, Event.REBALANCE): State.PREPARING,
        (State.COMPLETING, Event.REBALANCE): State.PREPARING,
        (State.PREPARING, Event.ALL_JOINED): State.COMPLETING,
        (State.PREPARING, Event.NONE_JOINED): State.EMPTY,
        (State.COMPLETING, Event.ASSIGNED): State.STABLE,
        (State.EMPTY, Event.DELETED): State.DEAD,
    }
)
"""Other pairs cannot happen: a KeyError is a bug."""
