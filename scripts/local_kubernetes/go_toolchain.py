"""Go: the one of this machine, or one fetched once into the user's cache from Go's module proxy."""

import hashlib
import os
import re
import shutil
import tempfile
import urllib.request
import zipfile
from pathlib import Path

from scripts.local_kubernetes.commands import CommandFailed, run
from scripts.local_kubernetes.packages import search_path
from scripts.local_kubernetes.places import cache_folder

VERSION = "1.24.9"
SHA256 = "2a683c9c1d65a0e221519c21850a3ed5fe5ff287d39d74e35e4af7ceb9e333b2"
MODULE = f"golang.org/toolchain@v0.0.1-go{VERSION}.linux-amd64"
URL = f"https://proxy.golang.org/{MODULE.replace('@', '/@v/')}.zip"
FETCHES_NEWER_ITSELF = (1, 21)  # an older one cannot read the go.mod of today
DOWNLOAD_TIMEOUT_S = 300.0


def ensure_go() -> Path:
    """The program `go`."""
    found = shutil.which("go", path=search_path())
    if found and _version(found) >= FETCHES_NEWER_ITSELF:
        return Path(found)
    folder = cache_folder() / f"go-{VERSION}"
    if not folder.is_dir():
        _fetch(folder)
    return folder / "bin" / "go"


def _version(go: str) -> tuple[int, int]:
    found = re.search(r"go(\d+)\.(\d+)", run(go, "version"))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _fetch(folder: Path) -> None:
    machine = os.uname().machine
    if machine != "x86_64":
        raise CommandFailed(f"go is missing: install Go {VERSION} for {machine}, or set KUBECONFIG to a cluster")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as scratch:
        archive = Path(scratch) / "go.zip"
        with urllib.request.urlopen(URL, timeout=DOWNLOAD_TIMEOUT_S) as answer:
            archive.write_bytes(answer.read())
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            raise CommandFailed(f"{URL} is not the file it should be (SHA-256 differs)")
        with zipfile.ZipFile(archive) as unpacking:
            unpacking.extractall(scratch)
        made = Path(scratch) / MODULE
        for program in (*(made / "bin").iterdir(), *(made / "pkg" / "tool").rglob("*")):
            program.chmod(0o755)  # a module's archive knows no programs
        made.rename(folder)
