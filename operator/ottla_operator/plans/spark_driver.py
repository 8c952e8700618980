"""A driver's and its executors' pods, as far as decisions need them. Pure."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from ottla_operator.plans.obstacle import Obstacle, pod_obstacle
from ottla_operator.resources.labels import ATTEMPT

__all__ = ["DriverState", "ObservedDriver", "driver_of", "executors_obstacle", "executors_running", "last_words"]

Object = Mapping[str, Any]
REMEDY = "give it a node with free CPU, memory and its volume, or ask for less in spec.driver and spec.executor"
LAST_LINES_MAX, LAST_WORDS_MAX = 12, 2000
# Log lines of Spark's ordinary work, such as how it cleans up after the failure.
ORDINARY = (" INFO ", " DEBUG ", " TRACE ")
# The many frames of a Java stack say least.
JAVA_FRAMES = ("\tat ", "\t... ")


class DriverState(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class ObservedDriver(msgspec.Struct, frozen=True, kw_only=True):
    """`end` says how its container ended, for people."""

    name: str
    uid: str
    owner_uid: str
    attempt: int
    state: DriverState
    terminating: bool
    obstacle: Obstacle | None = None
    end: str = ""


def driver_of(body: Object) -> ObservedDriver:
    metadata, status = body["metadata"], body.get("status", {})
    attempt = metadata.get("annotations", {}).get(ATTEMPT, "")
    owners = metadata.get("ownerReferences", ())
    return ObservedDriver(
        name=metadata["name"],
        uid=metadata["uid"],
        owner_uid=next((str(owner["uid"]) for owner in owners if owner.get("controller")), ""),
        attempt=int(attempt) if attempt.isdecimal() else 0,
        state=_state(status),
        terminating="deletionTimestamp" in metadata,
        obstacle=_obstacle(body),
        end=_end(status),
    )


def _state(status: Object) -> DriverState:
    """A pod's phase Unknown is a node that does not answer: its driver may well run."""
    phase = status.get("phase", "Pending")
    return DriverState.RUNNING if phase == "Unknown" else DriverState(phase)


def _end(status: Object) -> str:
    if reason := status.get("reason"):  # Evicted, NodeLost …
        return f"{reason}: {status.get('message', '')}".rstrip(": ")
    for container in status.get("containerStatuses", ()):
        if ended := container.get("state", {}).get("terminated"):
            return f"exit code {ended.get('exitCode')} ({ended.get('reason', 'no reason given')})"
    return ""


def _obstacle(body: Object) -> Obstacle | None:
    return pod_obstacle(body, remedy=REMEDY)


def executors_running(pods: Iterable[Object]) -> int:
    return sum(pod.get("status", {}).get("phase") == "Running" for pod in pods)


def executors_obstacle(pods: Iterable[Object]) -> Obstacle | None:
    return next((obstacle for obstacle in map(_obstacle, pods) if obstacle is not None), None)


def last_words(log: str) -> str:
    """The end of a log without Spark's ordinary lines and Java's frames, if anything else is there."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    relevant = [line for line in lines if not (line.startswith(JAVA_FRAMES) or any(w in line[:40] for w in ORDINARY))]
    return "\n".join((relevant or lines)[-LAST_LINES_MAX:])[-LAST_WORDS_MAX:]
