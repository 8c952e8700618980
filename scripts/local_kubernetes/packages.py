"""Debian packages of the nodes: container runtime, its network plugins, etcd, the firewall's tools."""

import os
import shutil
from pathlib import Path

from scripts.local_kubernetes.commands import CommandFailed, run

INSTALL_TIMEOUT_S = 600.0
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
    """Installs what lacks; without the right to, says what to install."""
    missing = sorted({package for name, package in needed.items() if not _present(name)})
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise CommandFailed(f"missing on this machine: install {' '.join(missing)} (Debian's names)")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "-y", "-q", "--no-install-recommends", *missing)
    try:
        run(*install, environment=quiet, timeout_s=INSTALL_TIMEOUT_S)
    except CommandFailed:
        # A fresh image has no package lists yet, an old one lists versions that are gone.
        run("apt-get", "update", "-q", environment=quiet, timeout_s=INSTALL_TIMEOUT_S)
        run(*install, environment=quiet, timeout_s=INSTALL_TIMEOUT_S)


def _present(name: str) -> bool:
    return Path(name).exists() if name.startswith("/") else shutil.which(name, path=search_path()) is not None


def search_path() -> str:
    """Daemons live in folders that a user's PATH may lack."""
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/local/go/bin"))
