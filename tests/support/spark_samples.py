"""SparkApplications and pods that the operator's tests begin with."""

from typing import Any

from ottla_operator.manifests.spark_config import SparkRuntime
from ottla_operator.plans.spark_driver import DriverState, ObservedDriver
from ottla_operator.plans.spark_phases import Observation
from ottla_operator.resources.spark_application import RestartPolicy, SparkApplication

UID = "0b3c9a1e-66a8-4f0f-9a44-7c5a3f8f1d10"
NOW = "2026-01-05T12:00:00Z"
RUNTIME = SparkRuntime(image="spark:1", pull_policy="Never", domain="cluster.local", bootstrap="events-bootstrap:9092")


def application(*, status: dict[str, Any] | None = None, generation: int = 1, **spec: Any) -> SparkApplication:
    body: dict[str, Any] = {
        "metadata": {"name": "sessions", "namespace": "default", "uid": UID, "generation": generation},
        "spec": {"mainApplicationFile": "local:///opt/app.py", **spec},
    }
    return SparkApplication.parse(body | ({"status": status} if status else {}))


def driver(state: DriverState = DriverState.RUNNING, **more: Any) -> ObservedDriver:
    facts: dict[str, Any] = {
        "name": "sessions-driver",
        "uid": "d",
        "owner_uid": UID,
        "attempt": 1,
        "state": state,
        "terminating": False,
    }
    return ObservedDriver(**(facts | more))


def observation(**facts: Any) -> Observation:
    base: dict[str, Any] = {
        "spec_changed": False,
        "kafka_ready": True,
        "driver": None,
        "executors_left": 0,
        "attempts": 1,
        "policy": RestartPolicy(),
        "ended_s_ago": None,
    }
    return Observation(**(base | facts))
