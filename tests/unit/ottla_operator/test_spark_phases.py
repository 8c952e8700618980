"""The phases of a SparkApplication: every way through the table."""

import pytest
from ottla_operator.plans.spark_driver import DriverState
from ottla_operator.plans.spark_phases import NEXT, Event, Phase, event_of
from ottla_operator.resources.spark_application import RestartPolicy
from support.spark_samples import driver, observation

ONCE_MORE = RestartPolicy(type="OnFailure", on_failure_retries=1, on_failure_retry_interval=5)
ALWAYS = RestartPolicy(type="Always")
ENDS = {Phase.COMPLETED, Phase.FAILED}


@pytest.mark.parametrize(
    ("phase", "facts", "event"),
    [
        (Phase.NEW, {}, Event.ACCEPTED),
        (Phase.WAITING, {"kafka_ready": False}, None),
        (Phase.WAITING, {}, Event.KAFKA_READY),
        (Phase.SUBMITTED, {}, None),
        (Phase.SUBMITTED, {"driver": driver(DriverState.PENDING)}, None),
        (Phase.SUBMITTED, {"driver": driver()}, Event.DRIVER_STARTED),
        (Phase.SUBMITTED, {"driver": driver(DriverState.SUCCEEDED)}, Event.DRIVER_SUCCEEDED),
        (Phase.SUBMITTED, {"driver": driver(DriverState.FAILED)}, Event.DRIVER_FAILED),
        (Phase.RUNNING, {"driver": driver()}, None),
        (Phase.RUNNING, {"driver": driver(terminating=True)}, None),
        (Phase.RUNNING, {"driver": driver(DriverState.FAILED)}, Event.DRIVER_FAILED),
        (Phase.RUNNING, {"driver": driver(DriverState.SUCCEEDED)}, Event.DRIVER_SUCCEEDED),
        (Phase.RUNNING, {"driver": None}, Event.DRIVER_FAILED),
        (Phase.SUCCEEDING, {}, Event.NOT_AGAIN),
        (Phase.SUCCEEDING, {"policy": ONCE_MORE}, Event.NOT_AGAIN),
        (Phase.SUCCEEDING, {"policy": ALWAYS}, Event.RUN_AGAIN),
        (Phase.FAILING, {}, Event.NOT_AGAIN),
        (Phase.FAILING, {"policy": ONCE_MORE, "attempts": 1}, Event.RUN_AGAIN),
        (Phase.FAILING, {"policy": ONCE_MORE, "attempts": 2}, Event.NOT_AGAIN),
        (Phase.FAILING, {"policy": ALWAYS, "attempts": 99}, Event.RUN_AGAIN),
        (Phase.PENDING_RERUN, {"driver": driver(terminating=True)}, None),
        (Phase.PENDING_RERUN, {"executors_left": 1}, None),
        (Phase.PENDING_RERUN, {"policy": ONCE_MORE, "ended_s_ago": 4.0}, None),
        (Phase.PENDING_RERUN, {"policy": ONCE_MORE, "ended_s_ago": 5.0}, Event.CLEARED),
        (Phase.COMPLETED, {}, None),
        (Phase.FAILED, {}, None),
        (Phase.FAILED, {"spec_changed": True}, Event.SPEC_CHANGED),
        (Phase.RUNNING, {"spec_changed": True, "driver": driver()}, Event.SPEC_CHANGED),
        (Phase.WAITING, {"spec_changed": True}, Event.KAFKA_READY),
        (Phase.PENDING_RERUN, {"spec_changed": True}, Event.CLEARED),
    ],
)
def test_events(phase, facts, event):
    found = event_of(phase, observation(**facts))
    assert found == event
    assert found is None or (phase, found) in NEXT, "an event must lead somewhere"


def test_every_phase_can_be_reached_and_left():
    assert {phase for phase, _ in NEXT} == set(Phase), "also an end is left, when the spec changes"
    assert set(NEXT.values()) == set(Phase) - {Phase.NEW}


def test_a_driver_that_is_killed_once_is_run_again_and_succeeds():
    phase, attempts, phases = Phase.NEW, 0, []
    happenings = iter([driver(), None, driver(), driver(DriverState.SUCCEEDED)])
    now = None
    for _ in range(20):
        if phase in (Phase.SUBMITTED, Phase.RUNNING):
            now = next(happenings)
        elif phase is Phase.PENDING_RERUN:
            now = None
        event = event_of(phase, observation(driver=now, attempts=attempts, policy=ONCE_MORE))
        if event is None:
            continue
        phase = NEXT[phase, event]
        attempts += event is Event.KAFKA_READY
        phases.append(phase.value)
        if phase in ENDS:
            break
    assert phases == [
        *("Waiting", "Submitted", "Running", "Failing", "PendingRerun"),
        *("Waiting", "Submitted", "Running", "Succeeding", "Completed"),
    ]
    assert attempts == 2
