"""Settings that Kafka has removed and old files still contain: they are warned about. Pure."""

__all__ = ["why_retired"]

ZOOKEEPER = "Kafka 4 has no ZooKeeper, nor has Ottla"
REASONS = {
    "inter.broker.protocol.version": "the fleet's feature levels decide (UpdateFeatures)",
    "log.message.format.version": "there is one record format",
    "log.message.downconversion.enable": "there is one record format",
    "log.message.timestamp.difference.max.ms": "use log.message.timestamp.before.max.ms and …after.max.ms",
    "control.plane.listener.name": ZOOKEEPER,
    "broker.id.generation.enable": ZOOKEEPER,
    "reserved.broker.max.id": ZOOKEEPER,
    "controlled.shutdown.max.retries": ZOOKEEPER,
    "controlled.shutdown.retry.backoff.ms": ZOOKEEPER,
    "delegation.token.master.key": "use delegation.token.secret.key",
    "leader.imbalance.per.broker.percentage": "Kafka 4 rebalances leadership without a threshold",
    "offsets.commit.required.acks": "offset commits are always acknowledged by all in-sync replicas",
    "group.coordinator.new.enable": "there is one group coordinator",
    "auto.include.jmx.reporter": "there is no JMX",
    "host.name": "use listeners",
    "port": "use listeners",
    "advertised.host.name": "use advertised.listeners",
    "advertised.port": "use advertised.listeners",
}


def why_retired(name: str) -> str | None:
    if name.startswith(("zookeeper.", "password.encoder.")):
        return ZOOKEEPER
    return REASONS.get(name)
