"""This machine's part of the cluster's network: the bridge of the control plane, forwarding, DNS and Services."""

import contextlib
import json
from pathlib import Path

from scripts.local_kubernetes import pki, programs
from scripts.local_kubernetes.commands import CommandFailed, run
from scripts.local_kubernetes.places import API_ADDRESS, CONTROL_BRIDGE, PODS, state_folder

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
    """The address of the API server."""
    with contextlib.suppress(CommandFailed):  # it stays from a crashed run
        run("ip", "link", "add", CONTROL_BRIDGE, "type", "bridge")
    run("ip", "addr", "replace", f"{API_ADDRESS}/32", "dev", CONTROL_BRIDGE)
    run("ip", "link", "set", CONTROL_BRIDGE, "up")


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
