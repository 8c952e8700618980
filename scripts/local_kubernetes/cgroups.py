"""A cgroup of its own for each node, in the old hierarchy of one tree per controller and in the unified one."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from scripts.local_kubernetes.places import Place

MOUNT = Path("/sys/fs/cgroup")
CONTROLLERS = "+cpu +cpuset +io +memory +pids"


def unified() -> bool:
    return (MOUNT / "cgroup.controllers").exists()


def make(node: Place) -> None:
    if unified():
        with contextlib.suppress(OSError):  # some are on already, or this machine lacks one
            (MOUNT / "cgroup.subtree_control").write_text(CONTROLLERS)
    for tree in _trees():
        with contextlib.suppress(OSError):  # a tree that no pod uses may be read-only
            (tree / node.cgroup).mkdir(exist_ok=True)
    old_cpuset = MOUNT / "cpuset"
    if not unified() and old_cpuset.is_dir():
        for name in ("cpuset.cpus", "cpuset.mems"):  # empty in a new cpuset, and then no process may enter
            (old_cpuset / node.cgroup / name).write_text((old_cpuset / name).read_text())


def processes(node: Place) -> set[int]:
    """Every process of the node's pods."""
    return {
        int(pid)
        for tree in _trees()
        for file in (tree / node.cgroup).rglob("cgroup.procs")
        for pid in file.read_text().split()
    }


def remove(node: Place) -> None:
    for tree in _trees():
        top = tree / node.cgroup
        if top.is_dir():
            below = sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True)
            for folder in [*below, top]:
                folder.rmdir()


def _trees() -> Iterator[Path]:
    if unified():
        yield MOUNT
    else:
        yield from (path for path in MOUNT.iterdir() if path.is_dir() and not path.is_symlink())
