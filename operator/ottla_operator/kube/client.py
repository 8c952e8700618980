"""The client of the API server; only Kopf's watch has another one.

The asynchronous client of the `kubernetes` package provides configuration, certificates and token renewal. Objects are
plain dicts: manifests are built as dicts, and the server applies them (server-side apply).
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio import client, config

from ottla_operator.plans.obstacle import Blocked, TemporaryFailure
from ottla_operator.plans.refusals import refusal
from ottla_operator.resources.model import GROUP, VERSION, Metadata, Resource

__all__ = [
    "CONFIG_MAPS", "DISRUPTION_BUDGETS", "EVENTS", "NODES", "PODS", "ROLES", "ROLE_BINDINGS", "SERVICES",
    "SERVICE_ACCOUNTS", "STATEFUL_SETS", "VOLUME_CLAIMS", "Conflict", "Kind", "Kube", "KubeError", "KubeRefused",
    "Manifest", "kind_of",
]  # fmt: skip

FIELD_MANAGER = "ottla-operator"
ANSWER_SECONDS_MAX = 15.0
REQUESTS_AT_ONCE_MAX = 16
PAGE_SIZE = 500
# limitBytes counts from the first of the tailLines, so a small limit would drop the last lines.
LOG_BYTES_MAX = 1 << 18
# Bad request, forbidden, too large, unprocessable: asking again changes nothing.
REFUSED = (400, 403, 413, 422)
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


class KubeRefused(KubeError, Blocked):
    """A quota, a policy, a schema or a missing permission."""

    def __init__(self, status: int, text: str) -> None:
        TemporaryFailure.__init__(self, text)
        self.status, self.obstacle = status, refusal(text)


class Kube:
    """Connect in the event loop that uses it."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE_MAX)  # waiting for a slot does not count towards the time-out

    @staticmethod
    async def connect(kubeconfig: str | None = None) -> "Kube":
        """In a pod with its service account, elsewhere with KUBECONFIG or the file that is given."""
        settings = client.Configuration()
        try:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        except config.ConfigException:
            await config.load_kube_config(kubeconfig, client_configuration=settings)  # type: ignore[no-untyped-call]
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

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> list[Manifest]:
        """All pages. Adds apiVersion and kind, which the API server omits in list items."""
        query = {"limit": str(PAGE_SIZE)}
        for parameter, wanted in (("labelSelector", labels), ("fieldSelector", fields)):
            if wanted:
                query[parameter] = ",".join(f"{name}={value}" for name, value in wanted.items())
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

    async def apply(self, manifest: Manifest, kind: Kind, *, uid: str | None = None) -> Manifest:
        """Server-side apply: this field manager owns the fields. Returns the resulting object.

        With the `uid` of our object its fields are taken from whoever else manages them, and Conflict says that another
        object bears the name now. Without it the object is to be made: nothing is taken by force, so that one which
        somebody else has made in this moment raises Conflict.
        """
        metadata = manifest["metadata"]
        path = _path(kind, metadata.get("namespace", ""), metadata["name"])
        if uid is None:
            return await self._apply(path, manifest, force=False)
        return await self._apply(path, {**manifest, "metadata": {**metadata, "uid": uid}})

    async def apply_status(self, kind: Kind, about: Metadata, status: Manifest) -> None:
        """Server-side apply to the status subresource. No error if the object does not exist any more. It goes by the
        name: the API server ignores a uid here."""
        body = {"apiVersion": kind.api, "kind": kind.kind, "metadata": {"name": about.name}, "status": status}
        try:
            await self._apply(f"{_path(kind, about.namespace, about.name)}/status", body)
        except KubeError as error:
            if error.status != 404:
                raise

    async def _apply(self, path: str, body: Manifest, *, force: bool = True) -> Manifest:
        query = {"fieldManager": FIELD_MANAGER, "force": str(force).lower()}
        return await self._ask("PATCH", path, query=query, body=body, content="application/apply-patch+yaml")

    async def mark(
        self, kind: Kind, about: Metadata, *, finalizers: Sequence[str], annotations: Mapping[str, str]
    ) -> None:
        """All that this operator has of them: others of its own go. No error if the object does not exist."""
        metadata: Manifest = {"name": about.name, "namespace": about.namespace, "uid": about.uid}
        metadata |= {"finalizers": list(finalizers), "annotations": dict(annotations)}
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

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str, version: str | None = None) -> None:
        """Conflict for another object of this name, and with `version` also for one that has changed since. No error if
        the object does not exist."""
        body = {"preconditions": {"uid": uid} | ({"resourceVersion": version} if version else {})}
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
        answer = json.loads(data)
        text, causes = str(answer["message"]), (answer.get("details") or {}).get("causes") or ()
    except (ValueError, KeyError, TypeError, AttributeError):
        text, causes = data[:500].decode("utf-8", "replace"), ()
    # An apply with the uid of another object: "metadata.uid: field is immutable".
    if status == 409 or any(cause.get("field") == "metadata.uid" for cause in causes):
        return Conflict(409, text)
    return KubeRefused(status, text) if status in REFUSED else KubeError(status, text)


def _path(kind: Kind, namespace: str, name: str = "") -> str:
    root = f"/api/{kind.api}" if "/" not in kind.api else f"/apis/{kind.api}"
    scope = f"/namespaces/{quote(namespace)}" if kind.namespaced and namespace else ""
    return f"{root}{scope}/{kind.plural}" + (f"/{quote(name)}" if name else "")
