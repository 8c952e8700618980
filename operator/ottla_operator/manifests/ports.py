"""Ports in a node's pod. Pure."""

from ottla_operator.resources.kafka_cluster import KafkaCluster, Listener

__all__ = ["CLIENTS", "GRPC", "HEALTH", "REPLICATION", "port_of"]

REPLICATION = 9091  # between brokers: copying and questions
CLIENTS = 9092
GRPC = 9093  # quorum and control
HEALTH = 8080
_FIRST_NODE_PORT_LISTENER = 9094


def port_of(cluster: KafkaCluster, listener: Listener) -> int:
    if listener.type == "internal":
        return CLIENTS
    others = [one.name for one in cluster.spec.listeners if one.type != "internal"]
    return _FIRST_NODE_PORT_LISTENER + others.index(listener.name)
