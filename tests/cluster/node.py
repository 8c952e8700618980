"""One node: its own containerd and its own kubelet, with a bridge for its pods."""

import json
from pathlib import Path

from cluster import cgroups, pki, programs
from cluster.commands import answers, run, wait_until
from cluster.packages import CNI_PLUGINS
from cluster.pause_image import IMAGE as PAUSE_IMAGE
from cluster.places import API_ADDRESS, Place

RUNTIME_TIMEOUT_S = 30.0
CRI = 'plugins."io.containerd.grpc.v1.cri"'


def start(node: Place, binaries: Path, pause_archive: Path) -> None:
    for part in ("root", "state", "kubelet", "cni", "certs", "logs", "volumes"):
        (node.folder / part).mkdir(parents=True, exist_ok=True)
    (node.folder / "cni" / "10-bridge.conflist").write_text(json.dumps(_pod_network(node)))
    config = node.folder / "containerd.toml"
    config.write_text(_runtime_config(node))
    programs.start(f"containerd{node.number}", ["containerd", "--config", config])
    wait_until(lambda: _runtime_ready(node), what=f"containerd of {node.name} answers", timeout_s=RUNTIME_TIMEOUT_S)
    import_image(node, pause_archive)
    cgroups.make(node)
    (node.folder / "kubelet.yaml").write_text(json.dumps(_kubelet_config(node)))
    start_kubelet(node, binaries)


def start_kubelet(node: Place, binaries: Path) -> None:
    flags = {
        "config": node.folder / "kubelet.yaml",
        "kubeconfig": pki.folder() / f"{node.name}.kubeconfig",
        "hostname-override": node.name,
        "root-dir": node.folder / "kubelet",
        "cert-dir": node.folder / "certs",
        "node-ip": API_ADDRESS,
        "node-labels": f"topology.kubernetes.io/zone={node.zone}",
    }
    command = [binaries / "kubelet", *(f"--{name}={value}" for name, value in flags.items())]
    programs.start(kubelet_name(node), command)


def kubelet_name(node: Place) -> str:
    return f"kubelet{node.number}"


def import_image(node: Place, archive: Path, *, timeout_s: float = 300.0) -> None:
    run("ctr", "-a", node.socket, "-n", "k8s.io", "images", "import", archive, timeout_s=timeout_s)


def _runtime_ready(node: Place) -> bool:
    programs.check_running(f"containerd{node.number}")
    return answers("ctr", "-a", node.socket, "version")


def _pod_network(node: Place) -> dict[str, object]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": node.subnet}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": str(node.folder / "ipam"),
    }
    bridge = {"type": "bridge", "bridge": node.bridge, "isGateway": True, "hairpinMode": True, "ipam": addresses}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": node.network, "plugins": [bridge, ports]}


def _runtime_config(node: Place) -> str:
    """Everything that containerd and runc would put into /run or /var goes into the node's folder."""
    folder = node.folder
    return f"""version = 2
root = "{folder}/root"
state = "{folder}/state"
oom_score = 0
[grpc]
  address = "{node.socket}"
[ttrpc]
  address = "{folder}/c.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[{CRI}]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [{CRI}.cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{folder}/cni"
  [{CRI}.containerd]
    snapshotter = "{_snapshotter(folder)}"
    [{CRI}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [{CRI}.containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "{folder}/runc"
"""


def _snapshotter(folder: Path) -> str:
    """Inside a container the disk is an overlay itself, on which none can be stacked."""
    return "native" if run("stat", "-f", "-c", "%T", folder).strip() == "overlayfs" else "overlayfs"


def _kubelet_config(node: Place) -> dict[str, object]:
    authority = {"clientCAFile": str(pki.folder() / "ca.crt")}
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": API_ADDRESS,
        "port": node.kubelet_port,
        "healthzPort": node.health_port,
        "authentication": {"x509": authority, "webhook": {"enabled": True}, "anonymous": {"enabled": False}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki.folder() / f"{node.name}.crt"),
        "tlsPrivateKeyFile": str(pki.folder() / f"{node.name}.key"),
        "containerRuntimeEndpoint": f"unix://{node.socket}",
        "podLogsDir": str(node.folder / "logs"),  # kubelets that share one delete each other's logs
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "oomScoreAdj": 0,
        "nodeLeaseDurationSeconds": 20,
        "registryPullQPS": 0,
        "clusterDNS": [API_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": "/dev/null",
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }
