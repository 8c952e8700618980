"""Go programs: the small ones in `tests/support/go`, built into the user's cache when their sources changed."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from support.kafka_jars import cache_folder

from scripts.local_kubernetes.go_toolchain import ensure_go

SOURCES = Path(__file__).parent / "go"
BUILD_TIMEOUT_S = 600.0


def go_program(name: str) -> Path:
    """The program of `tests/support/go/<name>`, named by its sources so that it is never stale."""
    sources = SOURCES / name
    digest = hashlib.sha256(b"\0".join(one.read_bytes() for one in sorted(sources.iterdir()))).hexdigest()[:16]
    target = cache_folder().parent / f"go-{name}-{digest}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch) / name
            subprocess.run([ensure_go(), "build", "-o", made, "."], cwd=sources, check=True, timeout=BUILD_TIMEOUT_S)
            os.rename(made, target)
    return target
