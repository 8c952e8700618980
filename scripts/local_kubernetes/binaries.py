"""Kubernetes, Helm and CoreDNS, built once from their own sources by `tools/go.mod` into the user's cache.

The folder is named by the content of go.mod and go.sum, so that another version is another folder (a comment in them
rebuilds everything, too). It appears by rename, so that an interrupted build leaves nothing half done.
"""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from scripts.local_kubernetes.commands import CommandFailed
from scripts.local_kubernetes.go_toolchain import ensure_go
from scripts.local_kubernetes.places import KUBERNETES_VERSION, cache_folder

TOOLS = Path(__file__).parent / "tools"
BUILD_TIMEOUT_S = 45 * 60.0
NODE_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "helm",
    "coredns",
)


def binaries_folder() -> Path:
    digest = hashlib.sha256((TOOLS / "go.mod").read_bytes() + (TOOLS / "go.sum").read_bytes()).hexdigest()[:16]
    return cache_folder() / f"kubernetes-{KUBERNETES_VERSION}-{digest}"


def ensure_binaries(show: Callable[[str], None]) -> Path:
    """The folder with all programs; builds them the first time, which takes a quarter of an hour on two cores."""
    folder = binaries_folder()
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="build-") as scratch:
        made = Path(scratch) / "bin"
        made.mkdir()
        _build(made, show)
        try:
            made.rename(folder)
        except OSError:
            # Another run built the same; its programs are as good as ours.
            if not folder.is_dir():
                raise
    return folder


def _build(target: Path, show: Callable[[str], None]) -> None:
    version = "k8s.io/component-base/version."
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    stamps = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor}
    flags = " ".join(["-s -w", *(f"-X {version}{name}={value}" for name, value in stamps.items())])
    command = [str(ensure_go()), "build", "-v", "-trimpath", "-ldflags", flags, "-o", f"{target}/", "tool"]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    process = subprocess.Popen(command, cwd=TOOLS, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:  # -v names each package when it is compiled: progress
        said = [*said[-20:], line]
        show(line.strip())
    if process.wait(BUILD_TIMEOUT_S) != 0:
        raise CommandFailed(f"building Kubernetes failed:\n{''.join(said)}")
    if missing := [name for name in NODE_PROGRAMS if not (target / name).is_file()]:
        raise CommandFailed(f"the build made no {', '.join(missing)}")
