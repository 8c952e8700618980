"""A real Kubernetes, the images in its nodes, the chart installed, and the examples applied as they are."""

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from cluster.belongings import Belongings
from cluster.diagnosis import diagnosis
from cluster.fleet_access import Applied, KafkaOnKubernetes
from cluster.tables import readme_commands
from cluster.visit import refusal, visit_of
from cluster.visited import VisitedCluster, visited

from scripts.images import build_all
from scripts.local_kubernetes import choice, own

TOP = Path(__file__).parent.parent.parent
CHART = TOP / "charts" / "ottla"
EXAMPLES = TOP / "examples"
IMAGES = ["broker", "operator", "spark", "client"]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def images(request: pytest.FixtureRequest) -> list[Path]:
    """Archives of the present sources; none for a cluster that takes them from a registry."""
    if choice.is_given():
        return []
    with _shown(request):
        return build_all(IMAGES)


@pytest.fixture(scope="session")
def cluster(images: list[Path], request: pytest.FixtureRequest) -> Iterator[VisitedCluster]:
    """With the images on its nodes. A cluster that runs already stays; one that the tests started ends with them."""
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
        yield visited(access, visit_of(access.kind, os.environ))
    finally:
        if standing is None:
            choice.down()


@pytest.fixture(scope="session")
def installed(cluster: VisitedCluster) -> Iterator[VisitedCluster]:
    """By the README's line, with names and images that fit the cluster; the run's own namespace beside it."""
    visit = cluster.visit
    definitions = cluster.kubectl("get", "crds", "-o", "jsonpath={.items[*].metadata.name}").split()
    if why := refusal(visit, crds=definitions, kubeconfig=cluster.kubeconfig):
        pytest.fail(why, pytrace=False)
    belongings = Belongings(cluster, visit)
    try:
        belongings.make_namespace(visit.namespace)
        found = _install(cluster, belongings)
        try:
            yield cluster
        finally:
            belongings.remove_resources(visit.namespace)
            if not found:
                cluster.helm("uninstall", visit.release, "--namespace", visit.operator_namespace, "--wait")
    finally:
        belongings.remove_namespaces()
        belongings.remove_definitions()


def _install(cluster: VisitedCluster, belongings: Belongings) -> bool:
    """Whether our own cluster had it already, from a run before: then it is brought up to date and stays."""
    visit = cluster.visit
    (install,) = readme_commands("helm")
    assert install[0] == "install"
    if not visit.is_ours:
        belongings.make_namespace(visit.operator_namespace)
        cluster.helm(*visit.install(install), "--wait")
        belongings.definitions_installed()
        return False
    namespace = visit.operator_namespace
    found = visit.release in cluster.helm("list", "--namespace", namespace, "--short").split()
    if found:  # Helm leaves CRDs alone when it upgrades
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", CHART / "crds")
    cluster.helm("upgrade" if found else "install", *visit.install(install)[1:], "--wait")
    if found:  # the same image by name, another one by content
        cluster.kubectl("rollout", "restart", "deployment", "-n", namespace)
        cluster.kubectl("rollout", "status", "deployment", "-n", namespace)
    return found


@pytest.fixture(scope="session")
def examples(installed: VisitedCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder examples/ itself, or a copy with another registry's images."""
    visit = installed.visit
    if visit.is_ours:
        return EXAMPLES
    folder = tmp_path_factory.mktemp("examples")
    for file in EXAMPLES.glob("*.yaml"):
        (folder / file.name).write_text(visit.example(file.read_text()))
    return folder


@pytest.fixture(scope="session")
def events(installed: VisitedCluster, examples: Path) -> Applied:
    """`kubectl apply` of examples/, then `kubectl wait` until the brokers are Ready."""
    here = ("-n", installed.namespace)
    started = time.monotonic()
    installed.kubectl("apply", *here, "-f", examples / "cluster.yaml")
    wait = ("wait", *here, "--for=condition=Ready", "kafkacluster/events", "--timeout=120s")
    installed.kubectl(*wait, timeout_s=130)
    ready_s = time.monotonic() - started
    installed.kubectl("apply", *here, "-f", examples / "topic.yaml")
    return Applied(KafkaOnKubernetes(installed, name="events", namespace=installed.namespace), ready_s)


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
    access = getattr(item, "funcargs", {}).get("installed") or getattr(item, "funcargs", {}).get("cluster")
    if report.failed and access is not None:
        report.sections.append(("what Kubernetes says", diagnosis(access)))


def _shown(request: pytest.FixtureRequest) -> AbstractContextManager[None]:
    """Minutes of work show their progress, whatever pytest captures."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    return capture.global_and_fixture_disabled() if capture else nullcontext()
