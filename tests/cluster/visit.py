"""What one run of the tests may do to a cluster, by whose cluster it is. Pure.

A run has names of its own, and makes, changes and deletes nothing outside them. Our own cluster and kind's exist for
these tests, so the chart is installed there as the README says. A cluster that KUBECONFIG names belongs to somebody:
even the release has a name of its own there, its operator works in the run's namespace only, and the run refuses to
begin where Ottla's custom resource definitions exist already.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scripts.local_kubernetes.access import Kind

REGISTRY, TAG = "OTTLA_TEST_REGISTRY", "OTTLA_TEST_TAG"
OUR_REGISTRY = "docker.io/ottla"
VERSION = "0.1.0"  # as scripts/images.py builds them
RUN_LABEL = "ottla.dev/test-run"
CRDS = ("kafkaclusters.ottla.dev", "kafkatopics.ottla.dev", "sparkapplications.ottla.dev")
PRODUCT = ("operator", "broker", "spark")


def _new_id() -> str:
    return uuid.uuid4().hex[:8]


@dataclass(frozen=True, kw_only=True)
class Visit:
    """`registry` and `tag` say where a cluster that is not ours finds the images."""

    is_ours: bool
    registry: str = OUR_REGISTRY
    tag: str = VERSION
    id: str = field(default_factory=_new_id)

    @property
    def namespace(self) -> str:
        """Where the examples and everything of the tests go."""
        return f"ottla-test-{self.id}"

    @property
    def operator_namespace(self) -> str:
        return "ottla-system" if self.is_ours else f"{self.namespace}-system"

    @property
    def release(self) -> str:
        return "ottla" if self.is_ours else self.namespace

    @property
    def pull_policy(self) -> str:
        """Our nodes have what was built from the present sources, and nothing else will do. Elsewhere the registry has
        it, perhaps newer under the same tag."""
        return "Never" if self.is_ours else "Always"

    def image(self, name: str) -> str:
        return f"{self.registry}/{name}:{self.tag}"

    def install(self, readme: Sequence[str]) -> list[str]:
        """The README's `helm install` line for this cluster, with the images that it can run."""
        names = {"ottla": self.release, "ottla-system": self.operator_namespace}
        words = [names.get(word, word) for word in readme if self.is_ours or word != "--create-namespace"]
        values = {"images.pullPolicy": self.pull_policy}
        if not self.is_ours:
            values |= {f"images.{name}": self.image(name) for name in PRODUCT}
            values |= {"watchNamespaces": f"{{{self.namespace}}}"}
        return [*words, *(word for key, value in values.items() for word in ("--set", f"{key}={value}"))]

    def example(self, text: str) -> str:
        """An example as it is, save that another registry's images stand for ours."""
        for name in (*PRODUCT, "client"):
            text = text.replace(f"{OUR_REGISTRY}/{name}:{VERSION}", self.image(name))
        return text

    def namespace_object(self, name: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {RUN_LABEL: self.id}},
        }


def visit_of(kind: Kind, environment: Mapping[str, str]) -> Visit:
    if kind != "existing":
        return Visit(is_ours=True)
    registry, tag = environment.get(REGISTRY, "").rstrip("/"), environment.get(TAG, VERSION)
    return Visit(is_ours=False, registry=registry, tag=tag)


def refusal(visit: Visit, *, crds: Sequence[str], kubeconfig: str) -> str | None:
    """Why the tests must not begin in this cluster, and what to do; None when they may. `crds`: all that exist."""
    if visit.is_ours:
        return None
    if existing := [name for name in CRDS if name in crds]:
        return (
            f"the cluster of KUBECONFIG={kubeconfig} has {', '.join(existing)} already: somebody uses Ottla there, and "
            "these tests would put their own definitions in place of those; name a cluster without them, or unset "
            "KUBECONFIG to start one on this machine"
        )
    if not visit.registry:
        return (
            f"the nodes of KUBECONFIG={kubeconfig} need a registry: `make images`, push them and "
            f"{OUR_REGISTRY}/client, then set {REGISTRY}=registry.example/ottla (and {TAG}, unless it is {VERSION})"
        )
    return None


def is_same(made: Mapping[str, str], name: str, uid: str | None) -> bool:
    """Whether what bears this name now is what the run made: somebody may have made another of that name since."""
    return uid is not None and made.get(name) == uid
