"""Debian packages of the nodes: container runtime, its network plugins, etcd, the firewall's tools."""

import os
import shutil
from pathlib import Path

from scripts.debian import NotInstalled, can_install, install
from scripts.local_kubernetes.commands import CommandFailed

CNI_PLUGINS = Path("/usr/lib/cni")
# program (or file) → package
NEEDED = {
    "containerd": "containerd",
    "runc": "runc",
    "etcd": "etcd-server",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "openssl": "openssl",
    "gcc": "gcc",
    str(CNI_PLUGINS / "bridge"): "containernetworking-plugins",
    "/usr/lib/x86_64-linux-gnu/libc.a": "libc6-dev",
}


def ensure_packages(needed: dict[str, str] = NEEDED) -> None:
    """Installs what is missing; without the right to, says what to install."""
    missing = sorted({package for name, package in needed.items() if not _present(name)})
    if not missing:
        return
    if not can_install():
        raise CommandFailed(f"missing on this machine: install {' '.join(missing)} (Debian's names)")
    try:
        install(*missing)
    except NotInstalled as failed:
        raise CommandFailed(str(failed)) from None


def _present(name: str) -> bool:
    return Path(name).exists() if name.startswith("/") else shutil.which(name, path=search_path()) is not None


def search_path() -> str:
    """Daemons live in folders that a user's PATH may lack."""
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/local/go/bin"))
