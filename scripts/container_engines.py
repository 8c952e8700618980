"""docker, podman and buildah behind two verbs: build and save. Where no registry answers, the base image is made here.

The base is then Debian's own Python by mmdebstrap: the same release and the same Python as the image that the
Dockerfiles name.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.debian import NotInstalled, can_install, install

BASE = "docker.io/library/python:3.11-slim-bookworm"
OWN_BASE = "localhost/ottla/python-base:bookworm-1"
OWN_BASE_PACKAGES = "python3,python3-venv,ca-certificates"
BUILD_TIMEOUT_S = 1800
PULL_TIMEOUT_S = 120
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
DEBIAN_PACKAGES = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}


class BuildFailed(RuntimeError):
    """What could not be built and what the engine said."""


@dataclass(frozen=True)
class Engine:
    program: str
    base: str

    def build(self, reference: str, *, dockerfile: Path, context: Path) -> None:
        chosen = ["--build-arg", f"BASE={self.base}", "--tag", reference, "--file", str(dockerfile), str(context)]
        _run([*_build_command(self.program), *chosen])

    def save(self, reference: str, archive: Path) -> None:
        match self.program:
            case "docker":
                _run(["docker", "save", "--output", str(archive), reference])
            case "podman":
                _run(["podman", "save", "--format", "oci-archive", "--output", str(archive), reference])
            case _:
                # Its layers are not compressed: every node would pay for that with time.
                target = f"docker-archive:{archive}:{reference}"
                _run(["buildah", "push", "--quiet", reference, target])


def find_engine(cache: Path) -> Engine:
    """The first that answers; buildah is installed where none does."""
    cache.mkdir(parents=True, exist_ok=True)
    program = next((name for name in ("docker", "podman") if _answers([name, "info"])), None)
    if program is None:
        _ensure("buildah")
        program = "buildah"
    if _has(program, OWN_BASE):
        return Engine(program, OWN_BASE)
    if _has(program, BASE) or _answers([program, "pull", BASE], timeout_s=PULL_TIMEOUT_S):
        return Engine(program, BASE)
    print("… no registry answers: making the base image from Debian's packages", file=sys.stderr, flush=True)
    _make_base(program, cache)
    return Engine(program, OWN_BASE)


def _build_command(program: str) -> list[str]:
    if program == "docker":
        return ["docker", "build", "--quiet", "--network", "host"]
    # A machine behind a proxy trusts authorities that a fresh base does not know: only while building.
    certificates = ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"] if CERTIFICATES.is_file() else []
    common = ["--quiet", "--layers", "--network", "host", "--isolation", "chroot", *certificates]
    return [program, "build", *common]


def _make_base(program: str, cache: Path) -> None:
    _ensure("mmdebstrap")
    tree = cache / "base.tar"
    _run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={OWN_BASE_PACKAGES}", "bookworm", str(tree)])
    try:
        if program in ("docker", "podman"):
            _run([program, "import", str(tree), OWN_BASE])
        else:
            _import_into_buildah(tree)
    finally:
        tree.unlink(missing_ok=True)


def _import_into_buildah(tree: Path) -> None:
    container = _run(["buildah", "from", "scratch"]).strip()
    try:
        _run(["buildah", "add", "--quiet", container, str(tree), "/"])
        _run(["buildah", "commit", "--quiet", container, OWN_BASE])
    finally:
        _run(["buildah", "rm", container])


def _has(program: str, reference: str) -> bool:
    kind = ["image", "inspect"] if program in ("docker", "podman") else ["inspect", "--type", "image"]
    return _answers([program, *kind, reference])


def _ensure(program: str) -> None:
    if shutil.which(program):
        return
    package = DEBIAN_PACKAGES[program]
    if not can_install():
        raise BuildFailed(f"{program} is missing: install docker, podman or the Debian package {package}")
    try:
        install(package)
    except NotInstalled as failed:
        raise BuildFailed(str(failed)) from None


def _answers(command: list[str], *, timeout_s: float = 20) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=timeout_s).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-25:])
        raise BuildFailed(f"{' '.join(command)[:300]}\n{said}")
    return done.stdout
