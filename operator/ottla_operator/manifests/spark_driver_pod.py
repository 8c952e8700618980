"""The driver's pod: spark-submit in client mode, so that no JVM is needed to submit anything. Pure."""

from typing import Any

from ottla_operator.manifests.spark_config import (
    CONFIG_FOLDER,
    PORTS,
    PROPERTIES,
    SparkRuntime,
    checkpoint_mounts,
    environment_of,
    security_context,
)
from ottla_operator.manifests.spark_memory import pod_memory_mib
from ottla_operator.manifests.spark_names import (
    config_name,
    driver_name,
    labels_of,
    metadata_of,
    service_account_name,
)
from ottla_operator.resources.labels import ATTEMPT
from ottla_operator.resources.spark_application import SparkApplication

__all__ = ["CONTAINER", "driver_pod"]

CONTAINER = "driver"
CONFIG = "config"
# Queries stop, executors are released.
GRACE_SECONDS = 30


def driver_pod(application: SparkApplication, runtime: SparkRuntime, *, attempt: int) -> dict[str, Any]:
    """A new pod for each attempt; the kubelet never restarts it, because the operator counts the attempts."""
    driver = application.spec.driver
    metadata = metadata_of(application, driver_name(application))
    metadata["labels"] = {**driver.labels, **labels_of(application, "driver")}
    metadata["annotations"] = {**driver.annotations, ATTEMPT: str(attempt)}
    volumes, _ = checkpoint_mounts(application)
    config = {"name": CONFIG, "configMap": {"name": config_name(application)}}
    spec = {
        "restartPolicy": "Never",
        "serviceAccountName": service_account_name(application),
        "securityContext": security_context(),
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "nodeSelector": driver.node_selector,
        "tolerations": list(driver.tolerations),
        "containers": [_container(application, runtime)],
        "volumes": [config, *volumes],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(application: SparkApplication, runtime: SparkRuntime) -> dict[str, Any]:
    _, mounts = checkpoint_mounts(application)
    return {
        "name": CONTAINER,
        "image": runtime.image,
        "imagePullPolicy": runtime.pull_policy,
        "args": _arguments(application),
        "env": environment_of(application.spec.driver, runtime),
        "ports": [{"name": name, "containerPort": port} for name, port in PORTS.items()],
        "resources": _resources(application),
        "volumeMounts": [{"name": CONFIG, "mountPath": CONFIG_FOLDER, "readOnly": True}, *mounts],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _arguments(application: SparkApplication) -> list[str]:
    spec = application.spec
    main_class = ["--class", spec.main_class] if spec.main_class else []
    settings = ["--properties-file", f"{CONFIG_FOLDER}/{PROPERTIES}"]
    return ["driver", *settings, *main_class, spec.main_application_file, *spec.arguments]


def _resources(application: SparkApplication) -> dict[str, Any]:
    driver = application.spec.driver
    cpu = str(driver.core_request if driver.core_request is not None else driver.cores)
    memory = f"{pod_memory_mib(driver.memory, language=application.spec.type)}Mi"
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}
