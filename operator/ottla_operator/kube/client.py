"""The client of the API server; only Kopf's watch has another one.

The asynchronous client of the `kubernetes` package provides configuration, certificates and token renewal. Objects are
plain dicts: manifests are built as dicts, and the server applies them (server-side apply).
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio import client, config

from ottla_operator.plans.obstacle import TemporaryFailure
from ottla_operator.resources.model import GROUP, VERSION, Metadata, Resource

__all__ = [
    "CONFIG_MAPS", "DISRUPTION_BUDGETS", "EVENTS", "NODES", "PODS", "ROLES", "ROLE_BINDINGS", "SERVICES",
    "SERVICE_ACCOUNTS", "STATEFUL_SETS", "VOLUME_CLAIMS", "Conflict", "Kind", "Kube", "KubeError", "Manifest",
    "kind_of",
]  # fmt: skip

FIELD_MANAGER = "ottla-operator"
ANSWER_SECONDS_MAX = 15.0
REQUESTS_AT_ONCE_MAX = 16
PAGE_SIZE = 500
# limitBytes counts from the first of the tailLines, so a small limit would drop the last lines.
LOG_BYTES_MAX = 1 << 18
Manifest = dict[str, Any]


class Kind(NamedTuple):
    api: str
    kind: str
    plural: str
    namespaced: bool = True


STATEFUL_SETS = Kind("apps/v1", "StatefulSet", "statefulsets")
SERVICES = Kind("v1", "Service", "services")
CONFIG_MAPS = Kind("v1", "ConfigMap", "configmaps")
PODS = Kind("v1", "Pod", "pods")
VOLUME_CLAIMS = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
DISRUPTION_BUDGETS = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NODES = Kind("v1", "Node", "nodes", namespaced=False)
EVENTS = Kind("v1", "Event", "events")
SERVICE_ACCOUNTS = Kind("v1", "ServiceAccount", "serviceaccounts")
ROLES = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")


def kind_of(resource: type[Resource]) -> Kind:
    return Kind(f"{GROUP}/{VERSION}", resource.CRD.kind, resource.CRD.plural)


class KubeError(TemporaryFailure):
    """The API server returned an error status, or did not answer (status 0). The text is its message."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Conflict(KubeError):
    """409: the object was changed or created meanwhile. Read it again."""


class Kube:
    """Connect in the event loop that uses it."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE_MAX)  # waiting for a slot does not count towards the time-out

    @staticmethod
    async def connect() -> "Kube":
        """In a pod with its service account, elsewhere with KUBECONFIG."""
        settings = client.Configuration()
        try:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        except config.ConfigException:
            await config.load_kube_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        settings.connection_pool_maxsize = REQUESTS_AT_ONCE_MAX
        return Kube(client.ApiClient(settings))

    async def close(self) -> None:
        await self._api.close()  # type: ignore[no-untyped-call]

    # reading

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        try:
            return await self._ask("GET", _path(kind, namespace, name))
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, kind: Kind, namespace: str = "", *, labels: Mapping[str, str] | None = None) -> list[Manifest]:
        """All pages. Adds apiVersion and kind, which the API server omits in list items."""
        query = {"limit": str(PAGE_SIZE)}
        if labels:
            query["labelSelector"] = ",".join(f"{name}={value}" for name, value in labels.items())
        found: list[Manifest] = []
        while True:
            page = await self._ask("GET", _path(kind, namespace), query=query)
            found += [{"apiVersion": kind.api, "kind": kind.kind, **one} for one in page.get("items") or ()]
            following = page.get("metadata", {}).get("continue")
            if not following:
                return found
            query["continue"] = following

    async def log(self, namespace: str, pod: str, *, container: str = "", lines_max: int = 20) -> str:
        """The last lines of a container's log; empty if there is none."""
        query = {"tailLines": str(lines_max), "limitBytes": str(LOG_BYTES_MAX)} | (
            {"container": container} if container else {}
        )
        try:
            return (await self._send("GET", f"{_path(PODS, namespace, pod)}/log", query=query)).decode(
                "utf-8", "replace"
            )
        except KubeError as error:
            if error.status in (400, 404):
                return ""
            raise

    # writing

    async def apply(self, manifest: Manifest, kind: Kind) -> Manifest:
        """Server-side apply with force: this field manager owns the fields. Returns the resulting object."""
        metadata = manifest["metadata"]
        path = _path(kind, metadata.get("namespace", ""), metadata["name"])
        return await self._apply(path, manifest)

    async def apply_status(self, kind: Kind, *, namespace: str, name: str, status: Manifest) -> None:
        """Server-side apply to the status subresource. No error if the object does not exist."""
        body = {"apiVersion": kind.api, "kind": kind.kind, "metadata": {"name": name}, "status": status}
        try:
            await self._apply(f"{_path(kind, namespace, name)}/status", body)
        except KubeError as error:
            if error.status != 404:
                raise

    async def _apply(self, path: str, body: Manifest) -> Manifest:
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._ask("PATCH", path, query=query, body=body, content="application/apply-patch+yaml")

    async def add_finalizer(self, kind: Kind, about: Metadata, finalizer: str) -> None:
        """No error if the object does not exist."""
        metadata = {"name": about.name, "namespace": about.namespace, "uid": about.uid, "finalizers": [finalizer]}
        body = {"apiVersion": kind.api, "kind": kind.kind, "metadata": metadata}
        with contextlib.suppress(Conflict):  # with a uid, apply never creates an object
            await self._apply(_path(kind, about.namespace, about.name), body)

    async def remove_finalizer(self, kind: Kind, about: Metadata, finalizer: str) -> None:
        """Remove it whichever field manager owns it. Raises Conflict when the object changes at the same time."""
        live = await self.get(kind, about.namespace, about.name)
        if live is None or live["metadata"]["uid"] != about.uid:
            return
        left = [name for name in live["metadata"].get("finalizers", ()) if name != finalizer]
        body = {"metadata": {"resourceVersion": live["metadata"]["resourceVersion"], "finalizers": left}}
        path, content = _path(kind, about.namespace, about.name), "application/merge-patch+json"
        await self._ask("PATCH", path, query={"fieldManager": FIELD_MANAGER}, body=body, content=content)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str | None = None) -> None:
        """`uid` is a precondition: Conflict for another object of this name. No error if the object does not exist."""
        body = {"preconditions": {"uid": uid}} if uid else {}
        try:
            await self._ask("DELETE", _path(kind, namespace, name), body=body)
        except KubeError as error:
            if error.status != 404:
                raise

    async def create(self, manifest: Manifest, kind: Kind) -> Manifest:
        """Raises Conflict if the object exists."""
        return await self._ask("POST", _path(kind, manifest["metadata"].get("namespace", "")), body=manifest)

    # requests

    async def _ask(self, method: str, path: str, **more: Any) -> Manifest:
        answer: Manifest = json.loads(await self._send(method, path, **more))
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        content: str = "application/json",
    ) -> bytes:
        headers = {"Content-Type": content, "Accept": "application/json"}
        await self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = f"{self._api.configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            async with self._slots:
                response = await self._api.call_api(method, url, headers, body, _request_timeout=ANSWER_SECONDS_MAX)
                data = await response.read()  # type: ignore[no-untyped-call]
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise KubeError(0, f"the API server does not answer: {error or type(error).__name__}") from error
        if not 200 <= response.status < 300:
            raise _refused(response.status, data)
        return bytes(data)


def _refused(status: int, data: bytes) -> KubeError:
    try:
        text = str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        text = data[:500].decode("utf-8", "replace")
    return Conflict(status, text) if status == 409 else KubeError(status, text)


def _path(kind: Kind, namespace: str, name: str = "") -> str:
    root = f"/api/{kind.api}" if "/" not in kind.api else f"/apis/{kind.api}"
    scope = f"/namespaces/{quote(namespace)}" if kind.namespaced and namespace else ""
    return f"{root}{scope}/{kind.plural}" + (f"/{quote(name)}" if name else "")
