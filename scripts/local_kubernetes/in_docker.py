"""The same three nodes by kind, where docker answers."""

import os
import shutil
from pathlib import Path

from scripts.local_kubernetes.access import Access
from scripts.local_kubernetes.binaries import ensure_binaries
from scripts.local_kubernetes.commands import answers, run
from scripts.local_kubernetes.go_toolchain import ensure_go
from scripts.local_kubernetes.places import cache_folder
from scripts.local_kubernetes.progress import step

NAME = "ottla"
KIND_MODULE = "sigs.k8s.io/kind@v0.30.0"
CONFIG = Path(__file__).parents[2] / "kind-config.yaml"
CREATE_TIMEOUT_S = 600.0
STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "ottla-local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "rancher.io/local-path",
    "volumeBindingMode": "WaitForFirstConsumer",
    "reclaimPolicy": "Delete",
}


def docker_answers() -> bool:
    return shutil.which("docker") is not None and answers("docker", "info")


def kubeconfig() -> Path:
    return cache_folder() / "kind.kubeconfig"


def access() -> Access:
    on_path = all(shutil.which(name) for name in ("kubectl", "helm"))
    if on_path:
        return Access("kind", str(kubeconfig()), None)
    with step("kubectl and Helm (built once)") as show:
        return Access("kind", str(kubeconfig()), ensure_binaries(show))


def runs() -> bool:
    return kubeconfig().exists() and docker_answers() and NAME in run(kind(), "get", "clusters").split()


def up() -> Access:
    with step("three nodes in three zones by kind"):
        create = (
            "create",
            "cluster",
            "--name",
            NAME,
            "--config",
            CONFIG,
            "--kubeconfig",
            kubeconfig(),
            "--wait",
            "180s",
        )
        run(kind(), *create, cwd=CONFIG.parent, timeout_s=CREATE_TIMEOUT_S)
    here = access()
    here.kubectl("annotate", "storageclass", "standard", "storageclass.kubernetes.io/is-default-class-")
    here.apply(STORAGE_CLASS)
    return here


def down() -> None:
    run(kind(), "delete", "cluster", "--name", NAME, "--kubeconfig", kubeconfig())
    kubeconfig().unlink(missing_ok=True)


def kind() -> str:
    """The program, built into the user's cache where it is missing."""
    built = cache_folder() / "bin" / "kind"
    if found := shutil.which("kind"):
        return found
    if not built.exists():
        environment = {"GOBIN": str(built.parent), "CGO_ENABLED": "0"}
        run(ensure_go(), "install", KIND_MODULE, environment=environment, cwd=Path(os.sep), timeout_s=CREATE_TIMEOUT_S)
    return str(built)
