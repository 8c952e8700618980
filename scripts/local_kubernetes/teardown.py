"""Ends the cluster that we started and undoes what it did to this machine; also what a crashed run left behind."""

import contextlib
import os
import re
import shutil
import stat
from pathlib import Path

import psutil

from scripts.local_kubernetes import cgroups, kernel_settings, programs
from scripts.local_kubernetes.commands import CommandFailed, answers, run
from scripts.local_kubernetes.places import CONTROL_BRIDGE, NODES, state_folder

REMOVE_TIMEOUT_S = 300.0
RULES_OF_KUBERNETES = re.compile(r"\b(KUBE|CNI)-")
SHIM_SOCKETS = Path("/run/containerd/s")
CNI_RESULTS = Path("/var/lib/cni/results")
LOG_LINKS = Path("/var/log/containers")
# Made by kubelets, containerd and their plugins whatever their settings say; removed when nobody else uses them.
SHARED_FOLDERS = ("/var/lib/kubelet", "/var/lib/cni", "/run/containerd", "/var/log/containers", "/run/cni")


def down() -> None:
    """Kubelets first: they must not restart what is being ended. Does nothing if nothing of ours is there."""
    if not left_behind():
        return
    _end_processes()
    _unmount()
    for link in _links():
        if answers("ip", "link", "show", link):
            run("ip", "link", "delete", link)
    for program in ("iptables", "ip6tables"):
        _forget_rules(program)
    for node in NODES:
        cgroups.remove(node)
    kernel_settings.restore()
    _tidy_shared_folders()
    run("rm", "--recursive", "--force", state_folder(), timeout_s=REMOVE_TIMEOUT_S)  # three nodes' disks: many files


def left_behind() -> bool:
    """Whether a cluster of ours runs or has left traces."""
    return state_folder().exists() or any(Path(f"/sys/class/net/{link}").exists() for link in _links())


def _links() -> tuple[str, ...]:
    return (CONTROL_BRIDGE, *(node.bridge for node in NODES))


def _end_processes() -> None:
    names = programs.started_programs()
    programs.stop(name for name in names if name.startswith("kubelet"))
    programs.end_all({pid for node in NODES for pid in cgroups.processes(node)}, force=True)
    programs.end_all(_shims(), force=True)
    programs.stop(names, force=True)  # nothing of theirs is kept


def _shims() -> list[int]:
    """containerd's helpers outlive it, one per pod; our folder is in their arguments."""
    ours = str(state_folder())
    return [
        process.pid
        for process in psutil.process_iter(["name", "cmdline"])
        if (process.info["name"] or "").startswith("containerd-shim")
        and any(word.startswith(ours) for word in process.info["cmdline"] or ())
    ]


def _unmount() -> None:
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((one for one in mounted if one.startswith(f"{state_folder()}/")), reverse=True):
        run("umount", "--lazy", place)


def _forget_rules(program: str) -> None:
    if not shutil.which(program):
        return
    with contextlib.suppress(CommandFailed):  # a kernel without IPv6 has no such tables
        rules = run(f"{program}-save")
        kept = without_kubernetes(rules)
        if kept != rules:
            run(f"{program}-restore", stdin=kept)


def foreign_rules() -> list[str]:
    """Firewall rules of a Kubernetes that is not ours, before ours begins. The names in them do not say whose they are,
    so `down` could not distinguish them from ours."""
    assert not left_behind()
    found = []
    for program in ("iptables", "ip6tables"):
        if shutil.which(program):
            with contextlib.suppress(CommandFailed):
                found += rules_of_kubernetes(run(f"{program}-save"))
    return found


def rules_of_kubernetes(rules: str) -> list[str]:
    """Rules that lead somewhere, of what `iptables-save` said. A chain that nothing leads to harms nobody. Pure."""
    return [line for line in rules.splitlines() if line.startswith("-A") and RULES_OF_KUBERNETES.search(line)]


def without_kubernetes(rules: str) -> str:
    """What `iptables-save` said without chains and rules of kube-proxy, kubelets and their plugins. Pure."""
    return "".join(line for line in rules.splitlines(keepends=True) if not RULES_OF_KUBERNETES.search(line))


def _tidy_shared_folders() -> None:
    for socket in _entries(SHIM_SOCKETS):
        if stat.S_ISSOCK(socket.stat().st_mode) and str(socket) not in Path("/proc/net/unix").read_text():
            socket.unlink()
    for node in NODES:
        for result in CNI_RESULTS.glob(f"{node.network}-*-eth0"):
            pod = result.name.removeprefix(f"{node.network}-").removesuffix("-eth0")
            (CNI_RESULTS / f"cni-loopback-{pod}-lo").unlink(missing_ok=True)
            result.unlink()
    for link in _entries(LOG_LINKS):
        if link.is_symlink() and os.readlink(link).startswith(f"{state_folder()}/"):
            link.unlink()
    for folder in SHARED_FOLDERS:
        _remove_if_empty(Path(folder))


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _remove_if_empty(folder: Path) -> None:
    """With the empty folders in it."""
    for below in _entries(folder):
        if below.is_dir() and not below.is_symlink():
            _remove_if_empty(below)
        elif below.is_socket() and str(below) not in Path("/proc/net/unix").read_text():
            below.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
