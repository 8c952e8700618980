"""librdkafka's admin client: topics, partitions, configs, deleted records."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from support.librdkafka import DEADLINE_S, Sent, make_topic, read, send, watermarks
from support.waiting import eventually


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def refusal(future) -> KafkaError:  # type: ignore[no-untyped-def]
    with pytest.raises(KafkaException) as raised:
        future.result(DEADLINE_S)
    return raised.value.args[0]


def create(admin: AdminClient, topic: NewTopic, **options):  # type: ignore[no-untyped-def]
    return admin.create_topics([topic], **options)[topic.topic]


def topic_config(admin: AdminClient, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    return admin.describe_configs([resource])[resource].result(DEADLINE_S)


def test_create_describe_delete(admin: AdminClient, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=3, retention_ms="1234567")
    description = admin.list_topics(name, timeout=DEADLINE_S).topics[name]
    assert sorted(description.partitions) == [0, 1, 2]
    assert all(p.replicas == [1] and p.isrs == [1] and p.leader == 1 for p in description.partitions.values())
    admin.delete_topics([name])[name].result(DEADLINE_S)
    eventually(lambda: admin.list_topics(timeout=DEADLINE_S).topics, lambda topics: name not in topics)
    assert refusal(admin.delete_topics([name])[name]).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_topic_made_again_is_empty(admin: AdminClient, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    send(bootstrap, name, [Sent(b"old")])
    admin.delete_topics([name])[name].result(DEADLINE_S)
    eventually(lambda: admin.list_topics(timeout=DEADLINE_S).topics, lambda topics: name not in topics)
    make_topic(bootstrap, name)
    send(bootstrap, name, [Sent(b"new")])
    assert [m.value() for m in read(bootstrap, name)] == [b"new"]


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("bad name", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("..", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("zero-partitions", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("three-replicas", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("bad-value", 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad-key", 1, 1, config={"no.such.config": "1"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad-assignment", 1, replica_assignment=[[77]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=lambda value: value.topic[:16].replace(" ", "_") if isinstance(value, NewTopic) else str(value),
)
def test_bad_topics_are_refused_with_a_reason(admin: AdminClient, topic: NewTopic, code: int) -> None:
    error = refusal(create(admin, topic))
    assert error.code() == code
    assert len(error.str()) > 10
    assert topic.topic not in admin.list_topics(timeout=DEADLINE_S).topics


def test_existing_topic_and_validate_only(admin: AdminClient, bootstrap: str, name: str) -> None:
    create(admin, NewTopic(name, 1, 1), validate_only=True).result(DEADLINE_S)
    assert name not in admin.list_topics(timeout=DEADLINE_S).topics
    make_topic(bootstrap, name)
    error = refusal(create(admin, NewTopic(name, 1, 1)))
    assert (error.code(), error.str()) == (KafkaError.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def test_default_partitions_and_explicit_assignment(admin: AdminClient, name: str) -> None:
    create(admin, NewTopic(name, -1, -1)).result(DEADLINE_S)
    create(admin, NewTopic(f"{name}-explicit", 2, replica_assignment=[[1], [1]])).result(DEADLINE_S)
    topics = eventually(lambda: admin.list_topics(timeout=DEADLINE_S).topics, lambda found: f"{name}-explicit" in found)
    assert (len(topics[name].partitions), len(topics[f"{name}-explicit"].partitions)) == (1, 2)


def test_create_partitions(admin: AdminClient, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=2)
    admin.create_partitions([NewPartitions(name, 5)])[name].result(DEADLINE_S)
    eventually(
        lambda: admin.list_topics(name, timeout=DEADLINE_S).topics[name], lambda topic: len(topic.partitions) == 5
    )
    send(bootstrap, name, [Sent(b"x", partition=4)])
    assert watermarks(bootstrap, name, 4) == (0, 1)
    assert refusal(admin.create_partitions([NewPartitions(name, 3)])[name]).code() == KafkaError.INVALID_PARTITIONS
    absent = refusal(admin.create_partitions([NewPartitions(f"{name}-absent", 3)])[f"{name}-absent"])
    assert absent.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_topic_configs(admin: AdminClient, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, max_message_bytes="65536")
    before = topic_config(admin, name)
    assert before["max.message.bytes"].value == "65536"
    assert before["max.message.bytes"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert before["retention.ms"].value == "604800000"
    assert before["cleanup.policy"].value == "delete"
    assert before["retention.ms"].is_default and not before["retention.ms"].is_sensitive
    set_two = ConfigResource(
        ResourceType.TOPIC,
        name,
        incremental_configs=[
            ConfigEntry("retention.ms", "99999", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
            ConfigEntry("max.message.bytes", None, incremental_operation=AlterConfigOpType.DELETE),
        ],
    )
    admin.incremental_alter_configs([set_two])[set_two].result(DEADLINE_S)
    after = eventually(lambda: topic_config(admin, name), lambda config: config["retention.ms"].value == "99999")
    assert after["cleanup.policy"].value == "delete,compact"
    assert after["max.message.bytes"].value == "1048588"
    assert after["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value


def test_the_old_alter_replaces_all(admin: AdminClient, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, retention_ms="1111", segment_bytes="2000000")
    whole = ConfigResource(ResourceType.TOPIC, name, set_config={"segment.ms": "7777"})
    admin.alter_configs([whole])[whole].result(DEADLINE_S)
    after = eventually(lambda: topic_config(admin, name), lambda config: config["segment.ms"].value == "7777")
    assert (after["retention.ms"].value, after["segment.bytes"].value) == ("604800000", "1073741824")


def test_bad_config_changes_nothing(admin: AdminClient, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    bad = ConfigResource(
        ResourceType.TOPIC,
        name,
        incremental_configs=[
            ConfigEntry("segment.ms", "7777", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("cleanup.policy", "burn", incremental_operation=AlterConfigOpType.SET),
        ],
    )
    error = refusal(admin.incremental_alter_configs([bad])[bad])
    assert error.code() == KafkaError.INVALID_CONFIG and "cleanup.policy" in error.str()
    assert topic_config(admin, name)["segment.ms"].value == "604800000"


def test_broker_config(admin: AdminClient) -> None:
    resource = ConfigResource(ResourceType.BROKER, "1")
    config = admin.describe_configs([resource])[resource].result(DEADLINE_S)
    assert config["node.id"].value == "1" and config["node.id"].is_read_only
    assert config["num.partitions"].value == "1"
    assert config["log.retention.hours"].value == "168"
    assert config["message.max.bytes"].value == "1048588"


def test_delete_records(admin: AdminClient, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    send(bootstrap, name, [Sent(b"%d" % i) for i in range(100)])
    partition = TopicPartition(name, 0, 40)
    assert admin.delete_records([partition])[partition].result(DEADLINE_S).low_watermark == 40
    assert watermarks(bootstrap, name) == (40, 100)
    assert [m.offset() for m in read(bootstrap, name)] == list(range(40, 100))
    beyond = TopicPartition(name, 0, 1000)
    assert refusal(admin.delete_records([beyond])[beyond]).code() == KafkaError.OFFSET_OUT_OF_RANGE
    everything = TopicPartition(name, 0, -1)
    assert admin.delete_records([everything])[everything].result(DEADLINE_S).low_watermark == 100
    assert watermarks(bootstrap, name) == (100, 100)


def test_list_offsets(admin: AdminClient, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    stamps = [1_700_000_000_000 + delta for delta in (0, 5000, 2000)]
    for stamp in stamps:
        send(bootstrap, name, [Sent(b"x", timestamp_ms=stamp)])

    def offset(spec: OffsetSpec) -> int:
        partition = TopicPartition(name, 0)
        return admin.list_offsets({partition: spec})[partition].result(DEADLINE_S).offset

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 3
    assert offset(OffsetSpec.max_timestamp()) == 1
    assert offset(OffsetSpec.for_timestamp(stamps[0] + 1)) == 1


def test_describe_cluster_and_topics(admin: AdminClient, bootstrap: str, broker, name: str) -> None:  # type: ignore[no-untyped-def]
    cluster = admin.describe_cluster().result(DEADLINE_S)
    assert [(node.id, node.port) for node in cluster.nodes] == [(1, broker.port)]
    assert cluster.controller.id == 1 and len(cluster.cluster_id) == 22
    assert admin.list_topics(timeout=DEADLINE_S).cluster_id == cluster.cluster_id
