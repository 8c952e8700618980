"""Images unpacked once for all nodes and all runs: a containerd's disk in the user's cache, hard-linked into each node.

A runtime never changes a file of an image, so that nodes may share them; only its databases are copied. Saves minutes
at each start, and the pods of all nodes share their programs' memory.
"""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from scripts.local_kubernetes import programs, runtime
from scripts.local_kubernetes.commands import run
from scripts.local_kubernetes.places import Place, cache_folder, state_folder

PROGRAM = "image-store"
DATABASES = "*.db"


def fill(archives: Sequence[Path]) -> None:
    """Imports the archives that it lacks, by a containerd that runs only for that."""
    there = contents()
    missing = [archive for archive in archives if archive.name not in there]
    if not missing:
        return
    _folder().mkdir(parents=True, exist_ok=True)
    scratch = state_folder() / PROGRAM
    scratch.mkdir()
    runtime.start(PROGRAM, scratch, root=_root())
    try:
        for archive in missing:
            runtime.import_image(scratch, archive)
    finally:
        programs.stop([PROGRAM])
        shutil.rmtree(scratch)
    _list().write_text(json.dumps(newest(there, missing)))


def contents() -> list[str]:
    """Names of the archives whose images are in it."""
    return list(json.loads(_list().read_text())) if _list().exists() else []


def put_into(node: Place) -> None:
    """Before the node's containerd starts."""
    root = node.folder / "root"
    run("cp", "--archive", "--link", _root(), root)
    for database in root.rglob(DATABASES):
        own = database.with_suffix(".copy")
        shutil.copy2(database, own)
        os.replace(own, database)


def _folder() -> Path:
    return cache_folder() / "node-images"


def _root() -> Path:
    return _folder() / "root"


def _list() -> Path:
    return _folder() / "contents.json"


def newest(there: Sequence[str], added: Sequence[Path]) -> list[str]:
    """Names of archives after an import. One is named image-digest.tar: a newer digest replaces the older one. Pure."""
    latest = {name.rsplit("-", 1)[0]: name for name in [*there, *(archive.name for archive in added)]}
    return list(latest.values())
