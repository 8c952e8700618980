"""A disk that becomes slow and fast again by the existence of a file: a small library preloaded into the broker."""

import hashlib
import os
import subprocess
from pathlib import Path

from support.kafka_jars import cache_folder, require_program

SOURCE = Path(__file__).parent / "native" / "slow_disk.c"


def slowed_while(flag: Path) -> list[str]:
    """Prefix of a command whose disk is to be slow while that file exists."""
    return ["env", f"LD_PRELOAD={library()}", f"SLOW_DISK_WHEN={flag}"]


def library() -> Path:
    """Compiled when the source changed; it appears whole or not at all."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    target = cache_folder().parent / f"slow-disk-{digest}.so"
    if not target.exists():
        require_program("gcc", debian_package="build-essential")
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(made), str(SOURCE), "-ldl"], check=True)
        made.replace(target)
    return target
