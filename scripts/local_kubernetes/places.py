"""Addresses, names and folders of the cluster that we start ourselves.

One cluster per machine: its bridges, addresses and cgroups have fixed names, so that a later run finds what a crashed
one left behind.
"""

import os
from dataclasses import dataclass
from pathlib import Path

API_ADDRESS = "10.200.0.1"  # on a bridge of its own: reachable from this machine and from every pod
API_PORT = 16443
ETCD_PORT = 12379
ETCD_PEER_PORT = 12380
PODS = "10.201.0.0/16"
SERVICES = "10.96.0.0/16"
SERVICE_OF_API = "10.96.0.1"
CONTROL_BRIDGE = "ottla0"
KUBERNETES_VERSION = "v1.34.4"


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ottla"


def state_folder() -> Path:
    """Everything of the running cluster: logs, pids, certificates, the nodes' disks."""
    return cache_folder() / "cluster"


def kubeconfig() -> Path:
    return state_folder() / "pki" / "admin.kubeconfig"


def audit_log() -> Path:
    return state_folder() / "log" / "audit.log"


@dataclass(frozen=True)
class Place:
    """One node: its number decides all its names, ports and folders."""

    number: int
    zone: str

    @property
    def name(self) -> str:
        return f"node{self.number}"

    @property
    def folder(self) -> Path:
        return state_folder() / self.name

    @property
    def bridge(self) -> str:
        return f"ottla-n{self.number}"

    @property
    def subnet(self) -> str:
        return f"10.201.{self.number}.0/24"

    @property
    def network(self) -> str:
        return f"ottla-net{self.number}"

    @property
    def cgroup(self) -> str:
        return f"ottla-{self.name}"

    @property
    def kubelet_port(self) -> int:
        return 10250 + self.number * 10

    @property
    def health_port(self) -> int:
        return 10248 + self.number * 10


NODES = tuple(Place(number=number, zone=f"zone-{letter}") for number, letter in enumerate("abc"))
