"""The phases of a SparkApplication, and what leads from one to the next. Pure.

                 ┌──────────────────────────── spec changed ─────────────────────────────┐
                 ▼                                                                        │
    New ──▶ Waiting ──▶ Submitted ──▶ Running ──▶ Succeeding ──▶ Completed ───────────────┤
              ▲             │            │            │                                   │
              │             └─────┬──────┘            │ run again (Always)                │
              │                   ▼                   ▼                                   │
              │                Failing ──────▶ PendingRerun ──────────────────────────────┤
              │                   │ no more tries     │                                   │
              │                   ▼                   │ driver and executors gone,        │
              │                 Failed ───────────────┼─ interval over ───────────────────┘
              └───────────────────────────────────────┘

The phase is kept in the status. A reconcile applies one event at most; what a phase asks for is done again at each
reconcile, so an operator that ends between deciding and acting does it after its restart.
"""

from enum import StrEnum

import msgspec

from ottla_operator.plans.spark_driver import DriverState, ObservedDriver
from ottla_operator.resources.spark_application import RestartPolicy

__all__ = ["NEXT", "Event", "Observation", "Phase", "event_of"]


class Phase(StrEnum):
    NEW = "New"
    WAITING = "Waiting"
    SUBMITTED = "Submitted"
    RUNNING = "Running"
    SUCCEEDING = "Succeeding"
    COMPLETED = "Completed"
    FAILING = "Failing"
    PENDING_RERUN = "PendingRerun"
    FAILED = "Failed"


class Event(StrEnum):
    ACCEPTED = "accepted"
    KAFKA_READY = "Kafka ready"
    DRIVER_STARTED = "driver started"
    DRIVER_SUCCEEDED = "driver succeeded"
    DRIVER_FAILED = "driver failed"
    RUN_AGAIN = "to be run again"
    NOT_AGAIN = "not to be run again"
    CLEARED = "everything of the last run is gone, and the interval over"
    SPEC_CHANGED = "spec changed"


NEXT: dict[tuple[Phase, Event], Phase] = {
    (Phase.NEW, Event.ACCEPTED): Phase.WAITING,
    (Phase.WAITING, Event.KAFKA_READY): Phase.SUBMITTED,
    (Phase.SUBMITTED, Event.DRIVER_STARTED): Phase.RUNNING,
    (Phase.SUBMITTED, Event.DRIVER_SUCCEEDED): Phase.SUCCEEDING,
    (Phase.SUBMITTED, Event.DRIVER_FAILED): Phase.FAILING,
    (Phase.RUNNING, Event.DRIVER_SUCCEEDED): Phase.SUCCEEDING,
    (Phase.RUNNING, Event.DRIVER_FAILED): Phase.FAILING,
    (Phase.SUCCEEDING, Event.RUN_AGAIN): Phase.PENDING_RERUN,
    (Phase.SUCCEEDING, Event.NOT_AGAIN): Phase.COMPLETED,
    (Phase.FAILING, Event.RUN_AGAIN): Phase.PENDING_RERUN,
    (Phase.FAILING, Event.NOT_AGAIN): Phase.FAILED,
    (Phase.PENDING_RERUN, Event.CLEARED): Phase.WAITING,
    **{
        (phase, Event.SPEC_CHANGED): Phase.PENDING_RERUN
        for phase in Phase
        if phase not in (Phase.NEW, Phase.WAITING, Phase.PENDING_RERUN)
    },
}


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What the next event depends on. `driver`: the pod of the present attempt; `ended_s_ago`: the last one's end."""

    spec_changed: bool
    kafka_ready: bool
    driver: ObservedDriver | None
    executors_left: int
    attempts: int
    policy: RestartPolicy
    ended_s_ago: float | None


def event_of(phase: Phase, seen: Observation) -> Event | None:
    """None: nothing has happened."""
    if seen.spec_changed and (phase, Event.SPEC_CHANGED) in NEXT:
        return Event.SPEC_CHANGED
    match phase:
        case Phase.NEW:
            return Event.ACCEPTED
        case Phase.WAITING:
            return Event.KAFKA_READY if seen.kafka_ready else None
        case Phase.SUBMITTED | Phase.RUNNING:
            return _event_of_driver(phase, seen.driver)
        case Phase.SUCCEEDING:
            return Event.RUN_AGAIN if seen.policy.type == "Always" else Event.NOT_AGAIN
        case Phase.FAILING:
            return Event.RUN_AGAIN if _may_try_again(seen) else Event.NOT_AGAIN
        case Phase.PENDING_RERUN:
            return Event.CLEARED if _is_cleared(seen) else None
    return None


def _event_of_driver(phase: Phase, driver: ObservedDriver | None) -> Event | None:
    if driver is None:
        # One that ran and is gone was deleted, or its node was; one that never ran is made (again).
        return Event.DRIVER_FAILED if phase is Phase.RUNNING else None
    match driver.state:
        case DriverState.SUCCEEDED:
            return Event.DRIVER_SUCCEEDED
        case DriverState.FAILED:
            return Event.DRIVER_FAILED
        case DriverState.RUNNING:
            return Event.DRIVER_STARTED if phase is Phase.SUBMITTED else None
    return None


def _may_try_again(seen: Observation) -> bool:
    if seen.policy.type == "OnFailure":
        return seen.attempts <= seen.policy.on_failure_retries
    return seen.policy.type == "Always"


def _is_cleared(seen: Observation) -> bool:
    """Two runs at a time would write to the same checkpoint."""
    over = seen.ended_s_ago is None or seen.ended_s_ago >= seen.policy.on_failure_retry_interval
    return seen.driver is None and seen.executors_left == 0 and over
