"""Names and labels of a SparkApplication's objects. Pure."""

from typing import Any

from ottla_operator.manifests.ports import CLIENTS
from ottla_operator.resources.labels import APPLICATION
from ottla_operator.resources.model import GROUP, VERSION
from ottla_operator.resources.spark_application import SparkApplication

__all__ = [
    "bootstrap_servers", "checkpoint_claim_name", "config_name", "driver_host", "driver_name", "labels_of",
    "metadata_of", "selector_of", "service_account_name",
]  # fmt: skip


def driver_name(application: SparkApplication) -> str:
    """Of the pod, its Service, and what it may do."""
    return f"{application.metadata.name}-driver"


def config_name(application: SparkApplication) -> str:
    return f"{application.metadata.name}-spark"


def checkpoint_claim_name(application: SparkApplication) -> str | None:
    if application.spec.checkpoint is None:
        return None
    return application.spec.checkpoint.volume.claim_name or f"{application.metadata.name}-checkpoint"


def service_account_name(application: SparkApplication) -> str:
    return application.spec.driver.service_account or driver_name(application)


def driver_host(application: SparkApplication, *, domain: str) -> str:
    return f"{driver_name(application)}.{application.metadata.namespace}.svc.{domain}"


def bootstrap_servers(application: SparkApplication, *, domain: str) -> str:
    """Of its KafkaCluster; empty without one."""
    kafka = application.spec.kafka
    if kafka is None:
        return ""
    return f"{kafka.cluster_ref.name}-bootstrap.{application.metadata.namespace}.svc.{domain}:{CLIENTS}"


def selector_of(application: SparkApplication, role: str) -> dict[str, str]:
    """`role` is driver or executor, under the label that Spark itself gives to executors."""
    return {APPLICATION: application.metadata.name, "spark-role": role}


def labels_of(application: SparkApplication, role: str) -> dict[str, str]:
    return {
        **selector_of(application, role),
        "app.kubernetes.io/name": "spark",
        "app.kubernetes.io/instance": application.metadata.name,
        "app.kubernetes.io/component": role,
        "app.kubernetes.io/managed-by": "ottla",
    }


def metadata_of(application: SparkApplication, name: str) -> dict[str, Any]:
    """Of an object that goes when the SparkApplication goes."""
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": application.CRD.kind,
        "name": application.metadata.name,
        "uid": application.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "namespace": application.metadata.namespace,
        "labels": labels_of(application, "driver"),
        "ownerReferences": [owner],
    }
