"""Kernel settings that the cluster changes, and their values before it did."""

import json
from pathlib import Path

from scripts.local_kubernetes.places import state_folder

# Pods of different nodes talk through this machine; 127.0.0.1 reaches NodePorts.
OURS = {"net/ipv4/ip_forward": "1", "net/ipv4/conf/all/route_localnet": "1"}
KUBELETS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
TOP = Path("/proc/sys")


def change() -> None:
    """Before any kubelet starts."""
    before = {name: (TOP / name).read_text().strip() for name in (*OURS, *KUBELETS) if (TOP / name).exists()}
    _saved().write_text(json.dumps(before))
    for name, value in OURS.items():
        (TOP / name).write_text(value)


def restore() -> None:
    if _saved().exists():
        for name, value in json.loads(_saved().read_text()).items():
            (TOP / name).write_text(value)


def _saved() -> Path:
    return state_folder() / "sysctls.json"
