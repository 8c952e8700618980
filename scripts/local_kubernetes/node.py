"""One node: its own containerd and its own kubelet, with a bridge for its pods."""

import json
from pathlib import Path

from scripts.local_kubernetes import cgroups, image_store, pki, programs, runtime
from scripts.local_kubernetes.places import API_ADDRESS, Place


def start(node: Place, binaries: Path) -> None:
    for part in ("kubelet", "cni", "certs", "logs", "volumes"):
        (node.folder / part).mkdir(parents=True, exist_ok=True)
    (node.folder / "cni" / "10-bridge.conflist").write_text(json.dumps(_pod_network(node)))
    image_store.put_into(node)
    runtime.start(f"containerd{node.number}", node.folder, root=node.folder / "root")
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
        "containerRuntimeEndpoint": f"unix://{runtime.socket(node.folder)}",
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
