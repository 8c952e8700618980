"""This machine's part of the cluster's network: the bridge of the control plane, forwarding, DNS and Services."""

import contextlib
import json
from pathlib import Path

from cluster import pki, programs
from cluster.commands import CommandFailed, run
from cluster.places import API_ADDRESS, CONTROL_BRIDGE, PODS, state_folder

# Pods of different nodes talk through this machine; 127.0.0.1 reaches NodePorts.
SYSCTLS = {"net/ipv4/ip_forward": "1", "net/ipv4/conf/all/route_localnet": "1"}
DNS = f""".:53 {{
  bind {API_ADDRESS}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {{kubeconfig}}
    pods insecure
    ttl 1
  }}
  cache 1
}}
"""


def prepare() -> None:
    """The address of the API server; kernel settings, whose old values are kept for `restore`."""
    before = {name: _sysctl(name).read_text().strip() for name in SYSCTLS}
    (state_folder() / "sysctls.json").write_text(json.dumps(before))
    for name, value in SYSCTLS.items():
        _sysctl(name).write_text(value)
    with contextlib.suppress(CommandFailed):  # it stays from a crashed run
        run("ip", "link", "add", CONTROL_BRIDGE, "type", "bridge")
    run("ip", "addr", "replace", f"{API_ADDRESS}/32", "dev", CONTROL_BRIDGE)
    run("ip", "link", "set", CONTROL_BRIDGE, "up")


def restore() -> None:
    saved = state_folder() / "sysctls.json"
    if saved.exists():
        for name, value in json.loads(saved.read_text()).items():
            _sysctl(name).write_text(value)


def start_dns(binaries: Path) -> None:
    corefile = state_folder() / "Corefile"
    corefile.write_text(DNS.replace("{kubeconfig}", str(pki.folder() / "admin.kubeconfig")))
    programs.start("coredns", [binaries / "coredns", "-conf", corefile])


def start_services(binaries: Path) -> None:
    """One kube-proxy for all nodes, because all share this machine's network namespace."""
    untouched = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clusterCIDR": PODS,
        "hostnameOverride": "node0",
        "clientConnection": {"kubeconfig": str(pki.folder() / "admin.kubeconfig")},
        "conntrack": untouched,
        # An answer between two pods on one bridge would bypass the rules that must translate it back.
        "iptables": {"masqueradeAll": True, "minSyncPeriod": "0s"},
    }
    path = state_folder() / "proxy.yaml"
    path.write_text(json.dumps(config))
    programs.start("kube-proxy", [binaries / "kube-proxy", "--config", path])


def _sysctl(name: str) -> Path:
    return Path("/proc/sys") / name
