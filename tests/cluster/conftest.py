"""A real Kubernetes, the images in its nodes, the chart installed, and the examples applied as they are."""

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from cluster import choice, own
from cluster.access import Access
from cluster.diagnosis import diagnosis
from cluster.fleet_access import Applied, KafkaOnKubernetes
from cluster.tables import readme_commands

from scripts.images import build_all

TOP = Path(__file__).parent.parent.parent
NAMESPACE = "ottla-system"
RELEASE = "ottla"
CHART = TOP / "charts" / "ottla"
NEVER_PULLED = ("--set", "images.pullPolicy=Never")
IMAGES = ["broker", "operator", "spark", "client"]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def images(request: pytest.FixtureRequest) -> list[Path]:
    """Archives of the present sources."""
    with _shown(request):
        return build_all(IMAGES)


@pytest.fixture(scope="session")
def cluster(images: list[Path], request: pytest.FixtureRequest) -> Iterator[Access]:
    """With the images on its nodes. What stands already stays; what the tests started ends with them."""
    if own.abandoned():
        choice.down()
    with _shown(request):
        standing = choice.running()
    try:
        with _shown(request):
            access = choice.up(images)
        if standing is None and access.kind == "own":
            own.belongs_to(os.getpid())
        os.environ["KUBECONFIG"] = access.kubeconfig
        yield access
    finally:
        if standing is None:
            choice.down()


@pytest.fixture(scope="session")
def installed(cluster: Access) -> Iterator[Access]:
    """By the README's line: default values; but images are never pulled, so what runs is what was built."""
    found = RELEASE in cluster.helm("list", "--namespace", NAMESPACE, "--short").split()
    if found:  # Helm leaves CRDs alone when it upgrades
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", CHART / "crds")
    (install,) = readme_commands("helm")
    assert install[0] == "install"
    verb = "upgrade" if found else "install"
    cluster.helm(verb, *install[1:], *NEVER_PULLED, "--wait")
    if found:  # the same image by name, another one by content
        cluster.kubectl("rollout", "restart", "deployment", "-n", NAMESPACE)
        cluster.kubectl("rollout", "status", "deployment", "-n", NAMESPACE)
    yield cluster
    cluster.kubectl("delete", "kafkaclusters,kafkatopics,sparkapplications", "--all", "--namespace", "default")
    if not found:
        cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")
    cluster.kubectl("delete", "persistentvolumeclaims", "--all", "--namespace", "default")


@pytest.fixture(scope="session")
def events(installed: Access) -> Applied:
    """`kubectl apply` of examples/, then `kubectl wait` until the brokers are Ready."""
    started = time.monotonic()
    installed.kubectl("apply", "-f", TOP / "examples" / "cluster.yaml")
    installed.kubectl("wait", "--for=condition=Ready", "kafkacluster/events", "--timeout=120s", timeout_s=130)
    ready_s = time.monotonic() - started
    installed.kubectl("apply", "-f", TOP / "examples" / "topic.yaml")
    return Applied(KafkaOnKubernetes(installed, name="events", namespace="default"), ready_s)


@pytest.fixture
def topic(events: Applied, request: pytest.FixtureRequest) -> str:
    """A topic of three replicas that no other test uses, made by `kubectl apply`."""
    name = f"{request.node.name.replace('_', '-')[:50]}-{next(_numbers)}"
    return events.fleet.make_topic(name, partitions=3)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure shows what Kubernetes and the operator said."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    access = getattr(item, "funcargs", {}).get("cluster") or getattr(item, "funcargs", {}).get("installed")
    if report.failed and (access := access or choice.running()):
        report.sections.append(("what Kubernetes says", diagnosis(access)))


def _shown(request: pytest.FixtureRequest) -> AbstractContextManager[None]:
    """Minutes of work show their progress, whatever pytest captures."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    return capture.global_and_fixture_disabled() if capture else nullcontext()
