"""The settings that a node starts with, under Kafka's names. Pure."""

import hashlib
from collections.abc import Mapping

from ottla_operator.manifests.names import host_of, pod_name
from ottla_operator.manifests.ports import CLIENTS, GRPC, HEALTH, REPLICATION, port_of
from ottla_operator.plans.layout import Layout, NodeSet
from ottla_operator.resources.kafka_cluster import KafkaCluster, Pool

__all__ = ["DATA_DIR", "NodePorts", "config_hash", "pool_of", "server_properties"]

DATA_DIR = "/var/lib/ottla"
REPLICAS_DEFAULT_MAX = 3
HOST_IP = "${env:HOST_IP}"
ENVIRONMENT_PROVIDER = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}

# (listener's name, node id) → port on Kubernetes' nodes
NodePorts = Mapping[tuple[str, int], int]


def server_properties(
    cluster: KafkaCluster, layout: Layout, one: NodeSet, node_id: int, *, node_ports: NodePorts, domain: str
) -> str:
    pool = pool_of(cluster, one)
    settings = {"node.id": str(node_id), **_shared(cluster, layout, one, domain=domain)}
    if "broker" in pool.roles:
        pod = host_of(cluster, pod_name(cluster, one, node_id), domain=domain)
        settings["advertised.listeners"] = _advertised(cluster, pod, node_id, node_ports)
    return _text(settings)


def config_hash(cluster: KafkaCluster, layout: Layout, one: NodeSet, *, domain: str) -> str:
    """Of what all nodes of a set have in common: another one means that they have to be restarted."""
    hosts = {f"host of {each.name}": each.advertised_host or "" for each in cluster.spec.listeners}
    shared = _shared(cluster, layout, one, domain=domain) | hosts
    return hashlib.sha256(_text(shared).encode()).hexdigest()[:16]


def pool_of(cluster: KafkaCluster, one: NodeSet) -> Pool:
    return next(pool for pool in cluster.spec.pools if pool.name == one.pool)


def _shared(cluster: KafkaCluster, layout: Layout, one: NodeSet, *, domain: str) -> dict[str, str]:
    pool = pool_of(cluster, one)
    own = {
        "cluster.id": layout.cluster_id,
        "process.roles": ",".join(sorted(pool.roles)),
        "controller.quorum.voters": ",".join(_voters(cluster, layout, domain)),
        "ottla.grpc.port": str(GRPC),
        "ottla.replication.port": str(REPLICATION),
        "ottla.health.port": str(HEALTH),
        "log.dirs": f"{DATA_DIR}/data",
    }
    if one.zone:
        own["broker.rack"] = one.zone
    if "broker" in pool.roles:
        own |= _listeners(cluster)
    if any(one.type == "nodeport" and not one.advertised_host for one in cluster.spec.listeners):
        own |= ENVIRONMENT_PROVIDER
    given = {name: str(value) for name, value in cluster.spec.config.items()}
    return {**_defaults(cluster, layout), **given, **own}


def _defaults(cluster: KafkaCluster, layout: Layout) -> dict[str, str]:
    """What a fleet of this size should have and Kafka's defaults, made for one broker, do not give it."""
    brokers = sum(one.nodes for one in layout.sets if "broker" in pool_of(cluster, one).roles)
    replicas = min(brokers, REPLICAS_DEFAULT_MAX)
    in_sync = str(max(1, replicas - 1))
    return {
        "default.replication.factor": str(replicas),
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def _voters(cluster: KafkaCluster, layout: Layout, domain: str) -> list[str]:
    return [
        f"{node_id}@{host_of(cluster, pod_name(cluster, one, node_id), domain=domain)}:{GRPC}"
        for one in layout.sets
        if "controller" in pool_of(cluster, one).roles
        for node_id in one.ids
    ]


def _listeners(cluster: KafkaCluster) -> dict[str, str]:
    names = {listener.name.upper(): port_of(cluster, listener) for listener in cluster.spec.listeners}
    internal = next(name for name, port in names.items() if port == CLIENTS)
    return {
        "listeners": ",".join(f"{name}://:{port}" for name, port in names.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "inter.broker.listener.name": internal,
    }


def _advertised(cluster: KafkaCluster, pod: str, node_id: int, node_ports: NodePorts) -> str:
    """The internal one first: brokers that do not vote are reached at its host by others."""
    places = []
    for listener in sorted(cluster.spec.listeners, key=lambda each: each.type):
        name = listener.name.upper()
        if listener.type == "internal":
            places.append(f"{name}://{pod}:{CLIENTS}")
        elif port := node_ports.get((listener.name, node_id)):
            places.append(f"{name}://{listener.advertised_host or HOST_IP}:{port}")
    return ",".join(places)


def _text(settings: Mapping[str, str]) -> str:
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in sorted(settings.items()))


def _escaped(text: str) -> str:
    """As Java's properties want it; colons and equals signs are left readable where they are harmless."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
