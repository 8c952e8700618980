"""The few things that a sample needs from a Kafka client: topics made, ends of partitions, all records of a topic."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

__all__ = ["KafkaUnavailable", "cluster_id", "end_offsets", "make_topics", "read_topic"]

ANSWER_S_MAX = 30.0
POLL_S = 1.0
SILENT_POLLS_MAX = 30
REPLICAS = 3
NO_GROUP = "ottla-sample"  # librdkafka wants a group id even if the consumer only assigns


class KafkaUnavailable(RuntimeError):
    """The brokers do not answer, or lack the topic; the message says what to do."""


def cluster_id(bootstrap: str) -> str:
    try:
        return str(_admin(bootstrap).list_topics(timeout=ANSWER_S_MAX).cluster_id)
    except KafkaException as error:
        raise _unavailable(bootstrap, error) from None


def make_topics(bootstrap: str, names: Sequence[str], *, partitions: int) -> list[str]:
    """Those of them that were missing. Three replicas, or as many as there are brokers."""
    admin = _admin(bootstrap)
    try:
        metadata = admin.list_topics(timeout=ANSWER_S_MAX)
        replicas = min(REPLICAS, len(metadata.brokers))
        missing = [name for name in names if name not in metadata.topics]
        wanted = [NewTopic(name, num_partitions=partitions, replication_factor=replicas) for name in missing]
        for made in admin.create_topics(wanted, operation_timeout=ANSWER_S_MAX).values() if wanted else ():
            _finish(made)
    except KafkaException as error:
        raise _unavailable(bootstrap, error) from None
    return missing


def end_offsets(bootstrap: str, topic: str) -> dict[int, int]:
    consumer = _consumer(bootstrap)
    try:
        return _ends(consumer, topic)
    except KafkaException as error:
        raise _unavailable(bootstrap, error) from None
    finally:
        consumer.close()


def read_topic(bootstrap: str, topic: str, *, group: str | None = None) -> Iterator[Message]:
    """Every record up to the present ends; a partition's records come in their order.

    As the only member of a group, which then commits how far it has read; without one, nothing is committed.
    """
    consumer = _consumer(bootstrap, group or NO_GROUP)
    try:
        left = {partition: end for partition, end in _ends(consumer, topic).items() if end > 0}
        if group is None:
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in left])
        else:
            consumer.subscribe([topic], on_assign=_from_the_beginning)
        anything = bool(left)
        yield from _until_ends(consumer, left)
        if group is not None and anything:
            consumer.commit(asynchronous=False)
    except KafkaException as error:
        raise _unavailable(bootstrap, error) from None
    finally:
        consumer.close()


def _from_the_beginning(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    consumer.assign([TopicPartition(each.topic, each.partition, OFFSET_BEGINNING) for each in partitions])


def _until_ends(consumer: Consumer, left: dict[int, int]) -> Iterator[Message]:
    silent = 0
    while left:
        message = consumer.poll(POLL_S)
        if message is None:
            silent += 1
            if silent > SILENT_POLLS_MAX:
                raise KafkaUnavailable(f"no record for {SILENT_POLLS_MAX * POLL_S:g} s; still missing: {left}")
            continue
        if (error := message.error()) is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                left.pop(_partition(message), None)
                continue
            raise KafkaException(error)
        silent = 0
        if _partition(message) in left:
            yield message


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    found = consumer.list_topics(topic, timeout=ANSWER_S_MAX).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    ends = {}
    for partition in found.partitions:
        offsets = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_S_MAX)
        if offsets is None:
            raise KafkaUnavailable(f"{topic}-{partition} gave no end offset within {ANSWER_S_MAX:g} s")
        ends[partition] = offsets[1] if offsets[1] > offsets[0] else 0
    return ends


def _partition(message: Message) -> int:
    partition = message.partition()
    assert partition is not None
    return partition


def _finish(made: "Future[None]") -> None:
    try:
        made.result(timeout=ANSWER_S_MAX)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})


def _consumer(bootstrap: str, group: str = NO_GROUP) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            "log_level": 2,
        }
    )


def _unavailable(bootstrap: str, error: KafkaException) -> KafkaUnavailable:
    reason = error.args[0]
    return KafkaUnavailable(f"{bootstrap}: {reason.str() if isinstance(reason, KafkaError) else reason}")
