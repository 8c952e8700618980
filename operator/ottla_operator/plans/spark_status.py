"""The status of a SparkApplication. Pure."""

from collections.abc import Sequence

import msgspec

from ottla_operator.plans.conditions import Finding, conditions
from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.plans.spark_phases import Event, Phase
from ottla_operator.resources.spark_application import (
    ApplicationState,
    DriverInfo,
    SparkApplication,
    SparkApplicationStatus,
)

__all__ = ["Situation", "after", "spark_status"]


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """Beside the phase: what it waits for, what is in its way, how many executors run, why the last run failed."""

    waiting_for: Obstacle | None = None
    obstacle: Obstacle | None = None
    executors: int | None = None
    failure: str = ""


def after(
    application: SparkApplication, event: Event, phase: Phase, *, driver: str, failure: str, now: str
) -> SparkApplicationStatus:
    """The status when the event has led to the phase, without conditions yet."""
    before = application.status or SparkApplicationStatus()
    status = msgspec.structs.replace(before, application_state=_state(before, event, phase, failure))
    match event:
        case Event.SPEC_CHANGED:
            return msgspec.structs.replace(status, execution_attempts=0, termination_time=None)
        case Event.KAFKA_READY:
            return msgspec.structs.replace(
                status,
                execution_attempts=before.execution_attempts + 1,
                last_submission_attempt_time=now,
                driver_info=DriverInfo(pod_name=driver),
            )
        case Event.DRIVER_SUCCEEDED | Event.DRIVER_FAILED:
            return msgspec.structs.replace(status, termination_time=now, executors=None)
    return status


def _state(before: SparkApplicationStatus, event: Event, phase: Phase, failure: str) -> ApplicationState:
    """The last failure stays in sight until the program has succeeded or its spec has changed."""
    kept = None if event in (Event.DRIVER_SUCCEEDED, Event.SPEC_CHANGED) else before.application_state.error_message
    return ApplicationState(state=phase.value, error_message=failure or kept)


def spark_status(
    application: SparkApplication, status: SparkApplicationStatus, situation: Situation, *, now: str
) -> SparkApplicationStatus:
    """With conditions for the phase that it is in."""
    before = application.status.conditions if application.status else ()
    was_ready = any(one.type == "Ready" and one.status == "True" for one in before)
    generation = application.metadata.generation
    findings = _findings(application, status, situation, was_ready=was_ready)
    return msgspec.structs.replace(
        status,
        conditions=conditions(findings, before, generation=generation, now=now),
        observed_generation=generation,
        executors=situation.executors,
    )


def _findings(
    application: SparkApplication, status: SparkApplicationStatus, situation: Situation, *, was_ready: bool
) -> Sequence[Finding]:
    phase, error = Phase(status.application_state.state), status.application_state.error_message or ""
    unfinished = Finding("Succeeded", None, "Unfinished", "the program has not ended yet")
    match phase:
        case Phase.NEW | Phase.WAITING:
            why = situation.waiting_for or Obstacle("Waiting", "the application has not been checked yet")
            return Finding("Ready", False, why.reason, why.message), unfinished
        case Phase.SUBMITTED:
            why = situation.obstacle or Obstacle("DriverStarting", "the driver's pod is starting")
            return Finding("Ready", False, why.reason, why.message), unfinished
        case Phase.RUNNING:
            return _running(situation, was_ready=was_ready), unfinished
        case Phase.SUCCEEDING | Phase.COMPLETED:
            text = f"the program has ended well after {_times(status.execution_attempts)}"
            return Finding("Ready", True, "Completed", text), Finding("Succeeded", True, "Completed", text)
        case Phase.FAILING | Phase.PENDING_RERUN:
            text = f"{_next_try(application, status)}; {error}" if error else _next_try(application, status)
            return Finding("Ready", False, "RunAgain", text), unfinished
    text = f"{error}\nIt is not run again; correct the program or its spec, or see `kubectl logs`"
    return Finding("Ready", False, "Failed", text), Finding("Succeeded", False, "Failed", error)


def _running(situation: Situation, *, was_ready: bool) -> Finding:
    """A program releases its executors before it ends: it stays ready."""
    if situation.executors or was_ready:
        return Finding("Ready", True, "Running", "the driver runs")
    why = situation.obstacle or Obstacle("ExecutorsStarting", "the driver runs; no executor runs yet")
    return Finding("Ready", False, why.reason, why.message)


def _next_try(application: SparkApplication, status: SparkApplicationStatus) -> str:
    policy = application.spec.restart_policy
    again = f"the program is run again after {policy.on_failure_retry_interval} s"
    return f"{again} (so far {_times(status.execution_attempts)})" if status.execution_attempts else again


def _times(attempts: int) -> str:
    return "one run" if attempts == 1 else f"{attempts} runs"
