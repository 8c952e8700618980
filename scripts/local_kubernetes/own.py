"""A control plane, three kubelets and three containerds on this machine, without any container engine."""

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.local_kubernetes import (
    control_plane,
    image_store,
    kernel_settings,
    network,
    node,
    packages,
    pause_image,
    pki,
    programs,
    teardown,
    volumes,
)
from scripts.local_kubernetes.access import Access
from scripts.local_kubernetes.binaries import binaries_folder, ensure_binaries
from scripts.local_kubernetes.commands import CommandFailed, answers, wait_until
from scripts.local_kubernetes.places import NODES, Place, kubeconfig, state_folder
from scripts.local_kubernetes.progress import step

READY_TIMEOUT_S = 90.0
BUSY_TIMEOUT_S = 60.0
TOP = Path(__file__).parents[2]
PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "coredns",
    "volumes",
    *(f"{name}{place.number}" for place in NODES for name in ("containerd", "kubelet")),
)


def access() -> Access:
    return Access("own", str(kubeconfig()), binaries_folder())


def runs() -> bool:
    """Whether all of it runs and answers; half a cluster counts as none, a busy one is waited for."""
    if not kubeconfig().exists() or any(programs.pid_of(name) is None for name in PROGRAMS):
        return False
    ask = (binaries_folder() / "kubectl", "--kubeconfig", kubeconfig(), "get", "--raw", "/readyz")
    try:
        wait_until(lambda: answers(*ask), what="the API server is ready", timeout_s=BUSY_TIMEOUT_S)
    except CommandFailed:
        return False
    return True


def up(archives: Sequence[Path] = ()) -> Access:
    """With the images of these archives on every node."""
    if os.geteuid() != 0:
        raise CommandFailed("kubelets and containerds need root: run as root, start docker, or set KUBECONFIG")
    os.environ["PATH"] = packages.search_path()
    with step("packages of the nodes"):
        packages.ensure_packages()
    with step("Kubernetes, Helm and CoreDNS (built once, about 15 minutes)") as show:
        binaries = ensure_binaries(show)
    if teardown.left_behind():
        with step("removing what a former run left"):
            teardown.down()
    if rules := teardown.foreign_rules():
        raise CommandFailed(
            f"this machine is a node of a Kubernetes already ({rules[0]}): to end ours would take its firewall rules "
            "along; set KUBECONFIG to that cluster, or use another machine"
        )
    state_folder().mkdir(parents=True)
    with step("images, unpacked once for all nodes"):
        image_store.fill([pause_image.ensure_archive(), *archives])
        (state_folder() / "loaded.json").write_text(json.dumps(image_store.contents()))
    with step("certificates"):
        pki.make()
    with step("etcd, API server, controllers, scheduler"):
        kernel_settings.change()
        network.prepare()
        control_plane.start(binaries)
    with step("three nodes in three zones"):
        _start_nodes(binaries)
        wait_until(_nodes_ready, what="three nodes are Ready", timeout_s=READY_TIMEOUT_S)
    return access()


def belongs_to(pid: int) -> None:
    """The cluster is to end with that process."""
    programs.remember(pid, _owner())


def abandoned() -> bool:
    """Whether it should have ended with a process that is gone."""
    return _owner().exists() and programs.remembered(_owner()) is None


def kill_kubelet(place: Place) -> None:
    programs.stop([node.kubelet_name(place)], force=True)


def start_kubelet(place: Place) -> None:
    node.start_kubelet(place, binaries_folder())


def _owner() -> Path:
    return state_folder() / "owner.json"


def _start_nodes(binaries: Path) -> None:
    network.start_dns(binaries)
    network.start_services(binaries)
    access().apply(volumes.STORAGE_CLASS)
    provisioner = [sys.executable, "-m", volumes.__name__]
    programs.start("volumes", provisioner, environment={"PYTHONPATH": str(TOP)})
    with ThreadPoolExecutor(len(NODES)) as threads:
        list(threads.map(lambda place: node.start(place, binaries), NODES))


def _nodes_ready() -> bool:
    for name in PROGRAMS:
        programs.check_running(name)
    found = json.loads(access().kubectl("get", "nodes", "-o", "json"))["items"]
    ready = [
        one["metadata"]["name"]
        for one in found
        for condition in one["status"]["conditions"]
        if condition["type"] == "Ready" and condition["status"] == "True"
    ]
    return len(ready) == len(NODES)
