"""kafka-configs (ConfigCommand), unmodified: topics, one broker, the fleet-wide default."""

import re

from support.java import Finished, java_tool
from support.librdkafka import make_topic

TOPIC_DEFAULTS = {
    "cleanup.policy": ("delete", "log.cleanup.policy"),
    "compression.gzip.level": ("-1", "compression.gzip.level"),
    "compression.lz4.level": ("9", "compression.lz4.level"),
    "compression.type": ("producer", "compression.type"),
    "compression.zstd.level": ("3", "compression.zstd.level"),
    "delete.retention.ms": ("86400000", "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": ("60000", "log.segment.delete.delay.ms"),
    "flush.messages": ("9223372036854775807", "log.flush.interval.messages"),
    "flush.ms": ("9223372036854775807", None),
    "follower.replication.throttled.replicas": ("", None),
    "index.interval.bytes": ("4096", "log.index.interval.bytes"),
    "leader.replication.throttled.replicas": ("", None),
    "local.retention.bytes": ("-2", "log.local.retention.bytes"),
    "local.retention.ms": ("-2", "log.local.retention.ms"),
    "max.compaction.lag.ms": ("9223372036854775807", "log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": ("1048588", "message.max.bytes"),
    "message.timestamp.after.max.ms": ("3600000", "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": ("9223372036854775807", "log.message.timestamp.before.max.ms"),
    "message.timestamp.type": ("CreateTime", "log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": ("0.5", "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": ("0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": ("1", "min.insync.replicas"),
    "preallocate": ("false", "log.preallocate"),
    "remote.log.copy.disable": ("false", None),
    "remote.log.delete.on.disable": ("false", None),
    "remote.storage.enable": ("false", None),
    "retention.bytes": ("-1", "log.retention.bytes"),
    "retention.ms": ("604800000", None),
    "segment.bytes": ("1073741824", "log.segment.bytes"),
    "segment.index.bytes": ("10485760", "log.index.size.max.bytes"),
    "segment.jitter.ms": ("0", None),
    "segment.ms": ("604800000", None),
    "unclean.leader.election.enable": ("false", "unclean.leader.election.enable"),
}
# Some defaults of a Kafka broker that operators look up, and that must be spelled and valued the same.
BROKER_DEFAULTS = {
    "auto.create.topics.enable": "true",
    "compression.type": "producer",
    "default.replication.factor": "1",
    "log.cleaner.backoff.ms": "15000",
    "log.retention.check.interval.ms": "300000",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "max.connections": "2147483647",
    "message.max.bytes": "1048588",
    "num.partitions": "1",
    "producer.id.expiration.ms": "86400000",
    "socket.request.max.bytes": "104857600",
}


def configs(bootstrap: str, *arguments: str, code: int = 0) -> Finished:
    return java_tool("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap, *arguments, code=code)


def parsed(finished: Finished) -> dict[str, tuple[str, str]]:
    """Name → value, synonyms; from lines such as `  a=1 sensitive=false synonyms={DEFAULT_CONFIG:a=1}`."""
    found = (re.match(r"\s+([\w.]+)=(.*) sensitive=\w+ synonyms=\{(.*)\}$", line) for line in finished.out.splitlines())
    return {match[1]: (match[2], match[3]) for match in found if match}


def test_all_topic_settings_are_there_with_kafkas_defaults(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    shown = parsed(configs(bootstrap, "--describe", "--all", "--entity-type", "topics", "--entity-name", name))
    assert {key: value for key, (value, _) in shown.items()} == {key: value[0] for key, value in TOPIC_DEFAULTS.items()}
    for key, (value, broker_name) in TOPIC_DEFAULTS.items():
        if broker_name is not None:
            assert f"DEFAULT_CONFIG:{broker_name}={value}" in shown[key][1]


def test_topic_alter_and_delete(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, retention_ms="1000")
    topic = ("--entity-type", "topics", "--entity-name", name)
    changed = configs(bootstrap, "--alter", *topic, "--add-config", "segment.ms=7777,cleanup.policy=[compact,delete]")
    assert changed.lines == [f"Completed updating config for topic {name}."]
    configs(bootstrap, "--alter", *topic, "--delete-config", "retention.ms")
    described = configs(bootstrap, "--describe", *topic)
    assert described.lines[0] == f"Dynamic configs for topic {name} are:"
    assert parsed(described) == {
        "segment.ms": ("7777", "DYNAMIC_TOPIC_CONFIG:segment.ms=7777"),
        "cleanup.policy": (
            "compact,delete",
            "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete",
        ),
    }
    bad = configs(bootstrap, "--alter", *topic, "--add-config", "bad.key=1", code=1)
    assert "InvalidConfigurationException: Unknown topic config name: bad.key" in bad.err


def test_broker_and_fleet_defaults(bootstrap: str, name: str) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    default = ("--entity-type", "brokers", "--entity-default")
    shown = parsed(configs(bootstrap, "--describe", "--all", *broker))
    assert {key: shown[key][0] for key in BROKER_DEFAULTS} == BROKER_DEFAULTS
    assert shown["node.id"][0] == "1"

    changed = configs(bootstrap, "--alter", *broker, "--add-config", "log.cleaner.threads=2")
    assert changed.lines == ["Completed updating config for broker 1."]
    changed = configs(bootstrap, "--alter", *default, "--add-config", "log.retention.ms=86400001")
    assert changed.lines == ["Completed updating default config for brokers in the cluster."]

    of_broker = parsed(configs(bootstrap, "--describe", *broker))
    assert of_broker["log.cleaner.threads"] == (
        "2",
        "DYNAMIC_BROKER_CONFIG:log.cleaner.threads=2, DEFAULT_CONFIG:log.cleaner.threads=1",
    )
    of_default = configs(bootstrap, "--describe", *default)
    assert of_default.lines[0] == "Default configs for brokers in the cluster are:"
    assert parsed(of_default)["log.retention.ms"][0] == "86400001"
    # A topic without its own value inherits the fleet's.
    make_topic(bootstrap, name)
    inherited = parsed(configs(bootstrap, "--describe", "--all", "--entity-type", "topics", "--entity-name", name))
    assert inherited["retention.ms"][0] == "86400001"
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=86400001" in inherited["retention.ms"][1]

    read_only = configs(bootstrap, "--alter", *broker, "--add-config", "broker.id=4", code=1)
    assert "Cannot update these configs dynamically: Set(broker.id)" in read_only.err
    configs(bootstrap, "--alter", *default, "--delete-config", "log.retention.ms")
    assert "log.retention.ms" not in parsed(configs(bootstrap, "--describe", *default))
