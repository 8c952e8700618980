"""etcd, API server, controller manager and scheduler, as processes of this machine."""

from pathlib import Path

from scripts.local_kubernetes import pki, programs
from scripts.local_kubernetes.commands import answers, wait_until
from scripts.local_kubernetes.places import (
    API_ADDRESS,
    API_PORT,
    ETCD_PEER_PORT,
    ETCD_PORT,
    PODS,
    SERVICES,
    audit_log,
    kubeconfig,
    state_folder,
)

API_TIMEOUT_S = 60.0
AUDIT_POLICY = Path(__file__).parent / "audit-policy.yaml"
# A node that is silent this long is NotReady: short, because tests wait for it.
NODE_GRACE = "20s"


def start(binaries: Path) -> None:
    _start_etcd()
    programs.start("kube-apiserver", [binaries / "kube-apiserver", *_api_flags()])
    wait_until(lambda: _api_ready(binaries), what="the API server is ready", timeout_s=API_TIMEOUT_S)
    programs.start("kube-controller-manager", [binaries / "kube-controller-manager", *_controller_flags()])
    scheduler = (f"--kubeconfig={pki.folder()}/scheduler.kubeconfig", "--leader-elect=false")
    programs.start("kube-scheduler", [binaries / "kube-scheduler", *scheduler])


def _start_etcd() -> None:
    client, peer = f"http://127.0.0.1:{ETCD_PORT}", f"http://127.0.0.1:{ETCD_PEER_PORT}"
    flags = {
        "data-dir": state_folder() / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
    }
    # Nothing in it outlives the cluster, so no write waits for the disk.
    programs.start("etcd", ["etcd", "--unsafe-no-fsync", *(f"--{name}={value}" for name, value in flags.items())])


def _api_ready(binaries: Path) -> bool:
    programs.check_running("etcd")
    programs.check_running("kube-apiserver")
    return answers(binaries / "kubectl", "--kubeconfig", kubeconfig(), "get", "--raw", "/readyz")


def _api_flags() -> list[str]:
    keys = pki.folder()
    flags = {
        "etcd-servers": f"http://127.0.0.1:{ETCD_PORT}",
        "bind-address": API_ADDRESS,
        "secure-port": API_PORT,
        "advertise-address": API_ADDRESS,
        "service-cluster-ip-range": SERVICES,
        "tls-cert-file": keys / "api.crt",
        "tls-private-key-file": keys / "api.key",
        "client-ca-file": keys / "ca.crt",
        "authorization-mode": "Node,RBAC",
        "allow-privileged": "true",
        "service-account-key-file": keys / "service-accounts.pub",
        "service-account-signing-key-file": keys / "service-accounts.key",
        "service-account-issuer": "https://kubernetes.default.svc",
        "kubelet-certificate-authority": keys / "ca.crt",
        "kubelet-client-certificate": keys / "admin.crt",
        "kubelet-client-key": keys / "admin.key",
        "kubelet-preferred-address-types": "InternalIP",
        "audit-policy-file": AUDIT_POLICY,
        "audit-log-path": audit_log(),
        "audit-log-mode": "blocking",
        # Debian's etcd 3.4 does not report how far a watch is, which this feature needs for watches without a version.
        "feature-gates": "WatchList=false",
    }
    return [f"--{name}={value}" for name, value in flags.items()]


def _controller_flags() -> list[str]:
    keys = pki.folder()
    flags = {
        "kubeconfig": keys / "controller.kubeconfig",
        "use-service-account-credentials": "true",
        "service-account-private-key-file": keys / "service-accounts.key",
        "root-ca-file": keys / "ca.crt",
        "cluster-signing-cert-file": keys / "ca.crt",
        "cluster-signing-key-file": keys / "ca.key",
        "allocate-node-cidrs": "true",
        "cluster-cidr": PODS,
        "node-monitor-grace-period": NODE_GRACE,
        "leader-elect": "false",
    }
    return [f"--{name}={value}" for name, value in flags.items()]
