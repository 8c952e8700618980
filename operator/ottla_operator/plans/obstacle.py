"""Why something is not possible now, such as a pod that does not start. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["Blocked", "Obstacle", "TemporaryFailure", "pod_obstacle"]

Object = Mapping[str, Any]
IMAGE_REASONS = {"ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ImageInspectError"}
NOT_STARTED_REASONS = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}


class Obstacle(msgspec.Struct, frozen=True):
    """A word for programs, and a sentence with the next step for people."""

    reason: str
    message: str


class TemporaryFailure(Exception):
    """The API server or the brokers do not answer, or refuse. Expected: logged by its text and tried again. Any other
    exception is a bug."""


class Blocked(TemporaryFailure):
    """It goes on only when somebody does something: the obstacle becomes a condition of the object."""

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.message)
        self.obstacle = obstacle


def pod_obstacle(body: Object, *, remedy: str) -> Obstacle | None:
    """`remedy`: what to do when it cannot be scheduled."""
    name, status = body["metadata"]["name"], body.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        return Obstacle("Unschedulable", f"pod {name} cannot be scheduled ({scheduled.get('message', '')}); {remedy}")
    containers = (_container_obstacle(name, container) for container in status.get("containerStatuses", ()))
    return next((obstacle for obstacle in containers if obstacle is not None), None)


def _container_obstacle(pod: str, container: Object) -> Obstacle | None:
    waiting = container.get("state", {}).get("waiting", {})
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in IMAGE_REASONS:
        image, step = container["image"], "make it available to the nodes, or set spec.image"
        return Obstacle("ImageMissing", f"pod {pod} cannot get image {image} ({reason}: {message}); {step}")
    if reason in NOT_STARTED_REASONS:
        return Obstacle("ContainerNotStarted", f"pod {pod}: {reason}: {message}")
    return None
