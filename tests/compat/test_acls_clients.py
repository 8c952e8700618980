"""librdkafka under ACLs: what is allowed works, what is not ends in Kafka's code; a change counts at once."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from ottla.cli.main import app
from support.genuine import GenuineKafka
from support.librdkafka import make_topic
from support.ports import free_port
from support.process import BrokerProcess
from support.waiting import eventually

DEADLINE_S = 30
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE


class Guarded(NamedTuple):
    broker: BrokerProcess
    address: str

    def client(self, user: str) -> dict[str, str]:
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"{user}-password",
        }

    def allow(
        self, user: str, operation: AclOperation, kind: ResourceType, name: str, *, prefixed: bool = False
    ) -> None:
        pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
        binding = AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        admin.create_acls([binding])[binding].result(DEADLINE_S)

    def revoke(self, user: str, name: str | None = None) -> None:
        every = AclBindingFilter(
            ResourceType.ANY, name, ResourcePatternType.ANY, f"User:{user}", None, AclOperation.ANY,
            AclPermissionType.ANY,
        )  # fmt: skip
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        admin.delete_acls([every])[every].result(DEADLINE_S)


@pytest.fixture(scope="module")
def guarded(make_broker: Callable[..., BrokerProcess]) -> Iterator[Guarded]:
    broker, port = make_broker(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{broker.port},SASL://127.0.0.1:{port}"
    if isinstance(broker, GenuineKafka):
        listeners += f",CONTROLLER://127.0.0.1:{broker._controller_port}"
    users = " ".join(f'user_{name}="{name}-password"' for name in ("ann", "bob", "eve"))
    broker.settings.update(
        {
            "listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": f"{LOGIN} {users};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "group.initial.rebalance.delay.ms": "0",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "offsets.topic.replication.factor": "1",
        }
    )
    broker.start()
    yield Guarded(broker, f"127.0.0.1:{port}")


def sent(producer: Producer, topic: str, value: bytes = b"v") -> KafkaError | None:
    outcome: list[KafkaError | None] = []
    producer.produce(topic, value, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(DEADLINE_S)
    return outcome[0]


def test_a_producer_and_a_consumer_with_just_enough(guarded: Guarded, name: str) -> None:
    make_topic(guarded.broker.bootstrap, name)
    guarded.allow("ann", WRITE, ResourceType.TOPIC, name[:-1], prefixed=True)
    producer = Producer({**guarded.client("ann"), "enable.idempotence": True})
    assert sent(producer, name, b"one") is None
    guarded.allow("bob", READ, ResourceType.TOPIC, name)
    guarded.allow("bob", READ, ResourceType.GROUP, name)
    consumer = Consumer({**guarded.client("bob"), "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    message = consumer.poll(DEADLINE_S)
    assert message is not None and message.value() == b"one"
    consumer.commit(asynchronous=False)
    assert consumer.committed([TopicPartition(name, 0)], DEADLINE_S)[0].offset == 1
    guarded.revoke("bob")
    error = next(found.error() for found in iter(lambda: consumer.poll(DEADLINE_S), None) if found.error())
    assert error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)
    consumer.close()


def test_a_transaction_needs_its_id(guarded: Guarded, name: str) -> None:
    make_topic(guarded.broker.bootstrap, name)
    guarded.allow("ann", WRITE, ResourceType.TOPIC, name)
    producer = Producer({**guarded.client("ann"), "transactional.id": name})
    with pytest.raises(KafkaException) as refused:
        producer.init_transactions(DEADLINE_S)
    assert refused.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    guarded.allow("ann", WRITE, ResourceType.TRANSACTIONAL_ID, name)
    producer = Producer({**guarded.client("ann"), "transactional.id": name})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    assert sent(producer, name) is None
    producer.commit_transaction(DEADLINE_S)


def test_who_has_nothing_sees_nothing(guarded: Guarded, name: str) -> None:
    make_topic(guarded.broker.bootstrap, name)
    admin = AdminClient(guarded.client("eve"))
    assert not admin.list_topics(timeout=DEADLINE_S).topics
    named = admin.list_topics(name, timeout=DEADLINE_S).topics[name]
    assert named.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    error = sent(Producer({**guarded.client("eve"), "message.timeout.ms": 5000}), name)
    assert error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    guarded.allow("eve", DESCRIBE, ResourceType.TOPIC, name)
    assert name in admin.list_topics(timeout=DEADLINE_S).topics


@pytest.fixture
def by_expression(guarded: Guarded, name: str) -> Iterator[Callable[[], set[str]]]:
    """Bob is in a group by an expression that three topics match, of which he may read `-a`. Returns what he has."""
    for topic in "abc":
        make_topic(guarded.broker.bootstrap, f"{name}-{topic}")
    guarded.allow("bob", READ, ResourceType.TOPIC, f"{name}-a")
    guarded.allow("bob", READ, ResourceType.GROUP, name)
    consumer = Consumer({**guarded.client("bob"), "group.id": name, "group.protocol": "consumer"})
    consumer.subscribe([f"^{name}-.*"])
    admin = AdminClient({"bootstrap.servers": guarded.broker.bootstrap})

    def assigned() -> set[str]:
        consumer.poll(0.1)
        (future,) = admin.describe_consumer_groups([name]).values()
        members = future.result(DEADLINE_S).members
        return {f"{one.topic.removeprefix(name)}" for each in members for one in each.assignment.topic_partitions}

    yield assigned
    consumer.close()
    guarded.revoke("bob")


def test_an_expression_does_not_show_topics_that_may_not_be_described(by_expression: Callable[[], set[str]]) -> None:
    seen = eventually(by_expression, bool, timeout_s=DEADLINE_S)
    assert seen == {"-a"}


def test_an_expression_follows_the_rules(
    guarded: Guarded, name: str, by_expression: Callable[[], set[str]], request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--peer") == "kafka":
        pytest.skip("Kafka looks at the rules again after ten minutes")
    eventually(by_expression, lambda seen: seen == {"-a"}, timeout_s=DEADLINE_S)
    guarded.allow("bob", DESCRIBE, ResourceType.TOPIC, f"{name}-b")
    eventually(by_expression, lambda seen: seen == {"-a", "-b"}, timeout_s=DEADLINE_S)
    make_topic(guarded.broker.bootstrap, f"{name}-d")
    guarded.revoke("bob", f"{name}-b")
    eventually(by_expression, lambda seen: seen == {"-a"}, timeout_s=DEADLINE_S)


@pytest.fixture
def told(guarded: Guarded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command of `ottla` says to eve, who may do nothing, and with another password to anybody."""

    def run(*words: str, password: str = "eve-password", to: str = guarded.address) -> str:
        file = tmp_path / "librdkafka.conf"
        settings = guarded.client("eve") | {"sasl.password": password, "bootstrap.servers": "127.0.0.1:1"}
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        assert app([*words, "--command-config", str(file), "--bootstrap", to]) == 1
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    "words", [("acls", "list"), ("acls", "test", "ann", "read", "topic:a"), ("users", "list"), ("users", "remove", "x")]
)
def test_a_command_says_what_is_not_allowed(told: Callable[..., str], words: tuple[str, ...]) -> None:
    assert told(*words) == f"ottla {words[0]}: not authorized: this needs DESCRIBE on the cluster\n"


def test_a_command_says_which_login_failed(guarded: Guarded, told: Callable[..., str]) -> None:
    assert told("users", "list", password="wrong") == (
        f"ottla users: {guarded.address} refused the login of eve: wrong password or unknown user\n"
    )
