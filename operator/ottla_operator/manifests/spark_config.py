"""The ConfigMap that a driver starts with: Spark's settings, and the template of its executors. Pure."""

import json
from typing import Any

import msgspec

from ottla_operator.manifests.spark_memory import overhead_mib
from ottla_operator.manifests.spark_names import (
    checkpoint_claim_name,
    config_name,
    driver_host,
    driver_name,
    labels_of,
    metadata_of,
)
from ottla_operator.resources.spark_application import Driver, Executor, SparkApplication

__all__ = [
    "CONFIG_FOLDER",
    "PORTS",
    "PROPERTIES",
    "SparkRuntime",
    "checkpoint_mounts",
    "config_map",
    "environment_of",
    "security_context",
]

CONFIG_FOLDER = "/etc/ottla-spark"
PROPERTIES, EXECUTOR_TEMPLATE = "spark.properties", "executor.yaml"
# As Spark's own images have them.
PORTS = {"driver": 7078, "blockmanager": 7079}
API_SERVER = "k8s://https://kubernetes.default.svc:443"
CHECKPOINT = "checkpoint"
BOOTSTRAP_VARIABLE, BOOTSTRAP_SETTING = "OTTLA_BOOTSTRAP_SERVERS", "spark.ottla.kafka.bootstrap.servers"


class SparkRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator adds to a spec. `bootstrap` is empty without a KafkaCluster."""

    image: str
    pull_policy: str
    domain: str
    bootstrap: str = ""


def config_map(application: SparkApplication, runtime: SparkRuntime) -> dict[str, Any]:
    template = executor_template(application, runtime)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata_of(application, config_name(application)),
        "data": {
            PROPERTIES: _written(spark_properties(application, runtime)),
            EXECUTOR_TEMPLATE: json.dumps(template, indent=1) + "\n",  # JSON is YAML
        },
    }


def spark_properties(application: SparkApplication, runtime: SparkRuntime) -> dict[str, str]:
    """What the person has set wins over our defaults, but not over what must be so."""
    return {**_defaults(application, runtime), **application.spec.spark_conf, **_fixed(application, runtime)}


def _defaults(application: SparkApplication, runtime: SparkRuntime) -> dict[str, str]:
    spec = application.spec
    request = spec.executor.core_request
    return {
        "spark.app.name": application.metadata.name,
        "spark.driver.cores": str(spec.driver.cores),
        "spark.driver.memory": spec.driver.memory,
        "spark.executor.instances": str(spec.executor.instances),
        "spark.executor.cores": str(spec.executor.cores),
        "spark.executor.memory": spec.executor.memory,
        "spark.executor.memoryOverhead": f"{overhead_mib(spec.executor.memory, language=spec.type)}m",
        **({"spark.kubernetes.executor.request.cores": str(request)} if request is not None else {}),
        **({BOOTSTRAP_SETTING: runtime.bootstrap} if runtime.bootstrap else {}),
    }


def _fixed(application: SparkApplication, runtime: SparkRuntime) -> dict[str, str]:
    return {
        "spark.master": API_SERVER,
        "spark.submit.deployMode": "client",
        "spark.kubernetes.namespace": application.metadata.namespace,
        "spark.kubernetes.driver.pod.name": driver_name(application),
        "spark.kubernetes.executor.podNamePrefix": application.metadata.name,
        "spark.kubernetes.executor.podTemplateFile": f"{CONFIG_FOLDER}/{EXECUTOR_TEMPLATE}",
        "spark.kubernetes.container.image": runtime.image,
        "spark.kubernetes.container.image.pullPolicy": runtime.pull_policy,
        "spark.driver.host": driver_host(application, domain=runtime.domain),
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.driver.port": str(PORTS["driver"]),
        "spark.driver.blockManager.port": str(PORTS["blockmanager"]),
    }


def executor_template(application: SparkApplication, runtime: SparkRuntime) -> dict[str, Any]:
    """Spark fills in the rest: image, arguments, resources, its own labels, and the driver as owner."""
    executor = application.spec.executor
    volumes, mounts = checkpoint_mounts(application)
    container = {"name": "executor", "env": environment_of(executor, runtime), "volumeMounts": mounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {**executor.labels, **labels_of(application, "executor")},
            "annotations": executor.annotations,
        },
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": security_context(),
            "nodeSelector": executor.node_selector,
            "tolerations": list(executor.tolerations),
            "containers": [container],
            "volumes": volumes,
        },
    }


def security_context() -> dict[str, Any]:
    """The group makes a volume writable, whatever the image's user is."""
    return {"fsGroup": 10001, "fsGroupChangePolicy": "OnRootMismatch"}


def environment_of(pods: Driver | Executor, runtime: SparkRuntime) -> list[dict[str, Any]]:
    own = [{"name": BOOTSTRAP_VARIABLE, "value": runtime.bootstrap}] if runtime.bootstrap else []
    return [*own, *pods.env]


def checkpoint_mounts(application: SparkApplication) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes of the pod, and mounts of its container."""
    checkpoint, claim = application.spec.checkpoint, checkpoint_claim_name(application)
    if checkpoint is None:
        return [], []
    volume = {"name": CHECKPOINT, "persistentVolumeClaim": {"claimName": claim}}
    return [volume], [{"name": CHECKPOINT, "mountPath": checkpoint.path}]


def _written(properties: dict[str, str]) -> str:
    """In Java's syntax."""
    return "".join(f"{_escaped(name, key=True)}={_escaped(value)}\n" for name, value in sorted(properties.items()))


def _escaped(text: str, *, key: bool = False) -> str:
    for plain, escaped in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    if key:
        for sign in " =:":
            text = text.replace(sign, f"\\{sign}")
    return f"\\{text}" if text[:1] == " " else text
