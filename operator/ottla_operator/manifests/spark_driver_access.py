"""What a driver may do in its namespace, where the person has not named an account for it. Pure."""

from typing import Any

from ottla_operator.manifests.spark_names import driver_name, metadata_of
from ottla_operator.resources.spark_application import SparkApplication

__all__ = ["driver_account", "driver_role", "driver_role_binding"]

RBAC = "rbac.authorization.k8s.io"
# Spark makes executors' pods with their configuration and, where asked, their volumes.
KINDS = ["pods", "services", "configmaps", "persistentvolumeclaims"]
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]


def driver_account(application: SparkApplication) -> dict[str, Any]:
    return _object(application, "v1", "ServiceAccount")


def driver_role(application: SparkApplication) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "resources": KINDS, "verbs": VERBS}]
    return {**_object(application, f"{RBAC}/v1", "Role"), "rules": rules}


def driver_role_binding(application: SparkApplication) -> dict[str, Any]:
    name, namespace = driver_name(application), application.metadata.namespace
    return {
        **_object(application, f"{RBAC}/v1", "RoleBinding"),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def _object(application: SparkApplication, api: str, kind: str) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": metadata_of(application, driver_name(application))}
