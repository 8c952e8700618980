"""Topics that come into being because somebody asks for them, and the switch against it."""

from collections.abc import Callable

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient
from support.librdkafka import DEADLINE_S, Sent, read, send
from support.process import BrokerProcess

BROKER_SETTINGS = {"num.partitions": "3"}


def test_producing_makes_the_topic(bootstrap: str, name: str) -> None:
    assert not send(bootstrap, name, [Sent(b"x", partition=2)]).errors
    assert [m.value() for m in read(bootstrap, name, 2)] == [b"x"]
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(name, timeout=DEADLINE_S)
    assert len(found.topics[name].partitions) == 3


def test_an_illegal_name_is_not_made(bootstrap: str) -> None:
    reports = send(bootstrap, "no/such name", [Sent(b"x")], message_timeout_ms=5000)
    assert reports.errors
    assert "no/such name" not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=DEADLINE_S).topics


def test_switched_off(make_broker: Callable[..., BrokerProcess], name: str) -> None:
    broker = make_broker(**{"auto.create.topics.enable": "false"})
    broker.start()
    settings = {"message_timeout_ms": 4000, "topic_metadata_propagation_max_ms": 500}
    reports = send(broker.bootstrap, name, [Sent(b"x")], **settings)
    unknown = (KafkaError._UNKNOWN_TOPIC, KafkaError._MSG_TIMED_OUT, KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert reports.errors[0].code() in unknown
    assert name not in AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=DEADLINE_S).topics
    broker.stop()
