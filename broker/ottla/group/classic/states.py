"""The states of a classic group, and the table of what leads from one to the next. Pure.

         member came, left or changed             all who will come have come
Empty ─────────────────────────────▶ Preparing ─────────────────────────────▶ Completing
  ▲                                  Rebalance                                 Rebalance
  │             nobody came             │ ▲ ▲   member came, left or changed      │  │
  └─────────────────────────────────────┘ │ └─────────────────────────────────────┘  │
  │ deleted                               │ member came, left or changed              │ assignment is committed
  ▼                                       │                                           ▼
Dead                                      └────────────────────────────────────── Stable
"""

from enum import Enum, auto
from types import MappingProxyType

__all__ = ["NEXT", "Event", "State"]


class State(Enum):
    """The values are what clients get."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
    REBALANCE = auto()  # a member came, left or changed
    GATHERED = auto()  # all who will come have come
    DESERTED = auto()  # nobody came
    ASSIGNED = auto()  # the leader's assignment is committed
    DELETED = auto()


NEXT = MappingProxyType(
    {
        (State.EMPTY, Event.REBALANCE): State.PREPARING,
        (State.STABLE, Event.REBALANCE): State.PREPARING,
        (State.COMPLETING, Event.REBALANCE): State.PREPARING,
        (State.PREPARING, Event.GATHERED): State.COMPLETING,
        (State.PREPARING, Event.DESERTED): State.EMPTY,
        (State.COMPLETING, Event.ASSIGNED): State.STABLE,
        (State.EMPTY, Event.DELETED): State.DEAD,
    }
)
"""A pair that is not here cannot happen: KeyError is a bug."""
