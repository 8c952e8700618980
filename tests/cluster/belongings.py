"""What a run has made in a cluster, by name and uid, and its removal. Nothing else is deleted."""

from cluster.visit import CRDS, Visit, is_same

from scripts.local_kubernetes.access import Access
from scripts.local_kubernetes.commands import CommandFailed
from scripts.local_kubernetes.progress import console

GONE_TIMEOUT_S = 180.0
CUSTOM_RESOURCES = "kafkaclusters,kafkatopics,sparkapplications"


class Belongings:
    def __init__(self, access: Access, visit: Visit) -> None:
        self._access = access
        self._visit = visit
        self._namespaces: dict[str, str] = {}  # name → uid
        self._definitions: dict[str, str] = {}

    def make_namespace(self, name: str) -> None:
        """An error when it exists: it would be somebody else's."""
        self._access.create(self._visit.namespace_object(name))
        self._namespaces[name] = self._uid("namespace", name) or ""

    def definitions_installed(self) -> None:
        """The chart has just brought its custom resource definitions, where there were none."""
        self._definitions = {name: self._uid("crd", name) or "" for name in CRDS}

    def remove_resources(self, namespace: str) -> None:
        """While the operator is there to finish them."""
        if is_same(self._namespaces, namespace, self._uid("namespace", namespace)):
            words = ("delete", CUSTOM_RESOURCES, "--all", "--namespace", namespace, "--wait")
            self._access.kubectl(*words, timeout_s=GONE_TIMEOUT_S)

    def remove_namespaces(self) -> None:
        """With everything in them, volumes too."""
        for name in reversed(self._namespaces):
            if is_same(self._namespaces, name, self._uid("namespace", name)):
                self._access.kubectl("delete", "namespace", name, "--wait", timeout_s=GONE_TIMEOUT_S)

    def remove_definitions(self) -> None:
        """Their objects are deleted with them, so a definition stays if somebody has made one meanwhile."""
        for name in self._definitions:
            if not is_same(self._definitions, name, self._uid("crd", name)):
                continue
            if others := self._access.kubectl("get", name, "--all-namespaces", "-o", "name").split():
                console.print(f"{name} stays in the cluster: {', '.join(others)} is not of these tests")
            else:
                self._access.kubectl("delete", "crd", name)

    def _uid(self, kind: str, name: str) -> str | None:
        try:
            return self._access.kubectl("get", kind, name, "-o", "jsonpath={.metadata.uid}").strip() or None
        except CommandFailed as failed:
            if "NotFound" in str(failed):
                return None
            raise
