"""The headless Service by which executors find their driver. Pure."""

from typing import Any

from ottla_operator.manifests.spark_config import PORTS
from ottla_operator.manifests.spark_names import driver_name, metadata_of, selector_of
from ottla_operator.resources.spark_application import SparkApplication

__all__ = ["driver_service"]


def driver_service(application: SparkApplication) -> dict[str, Any]:
    """The address is published before readiness: a driver asks for executors as soon as it runs."""
    ports = [{"name": name, "port": port, "targetPort": port, "protocol": "TCP"} for name, port in PORTS.items()]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata_of(application, driver_name(application)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector_of(application, "driver"),
            "ports": ports,
        },
    }
