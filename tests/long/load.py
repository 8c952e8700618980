"""What clients do all the time in the soak: each activity repeats its step in a thread, and remembers its errors."""

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse
from support.frames import Connection
from support.librdkafka import DEADLINE_S
from support.process import BrokerProcess
from support.transactions import producer, transact

STEP_S = 0.1
VALUE_BYTES = 1000
STAY_RECORDS = 20
ERRORS_MAX = 20


class Activity(ABC):
    """`done` counts what its kind of activity counts. Rests `rest_s` after each step."""

    rest_s = STEP_S

    def __init__(self, name: str) -> None:
        self.name, self.done = name, 0
        self.errors: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def join(self) -> None:
        self._thread.join(3 * DEADLINE_S)
        assert not self._thread.is_alive(), f"{self.name} hangs"

    def failed(self, error: BaseException | KafkaError) -> None:
        self.errors.append(f"{datetime.now(UTC):%H:%M:%S} {self.name}, {self.done} done: {error!r}")
        if len(self.errors) >= ERRORS_MAX:
            self._stopping.set()

    @abstractmethod
    def step(self) -> None: ...

    def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """After the last step."""

    def _run(self) -> None:
        while not self._stopping.wait(self.rest_s):
            self._attempt(self.step)
        self._attempt(self.close)

    def _attempt(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            self.failed(error)


class Feeder(Activity):
    """An idempotent producer at a steady rate; with `keys` every record has one of so many keys."""

    def __init__(self, bootstrap: str, topic: str, *, rate: int, codec: str = "none", keys: int = 0) -> None:
        super().__init__(f"{codec} producer to {topic}")
        self._topic, self._keys = topic, keys
        self._per_step = max(1, round(rate * STEP_S))
        settings = {"enable.idempotence": True, "linger.ms": 20, "compression.type": codec}
        self._producer = Producer({"bootstrap.servers": bootstrap, **settings, "log_level": 0})

    def step(self) -> None:
        for _ in range(self._per_step):
            key = b"key-%d" % (self.done % self._keys) if self._keys else None
            value = os.urandom(VALUE_BYTES // 2) + b"." * (VALUE_BYTES // 2)  # half of it resists compression
            self._producer.produce(self._topic, value, key=key, on_delivery=self._report)
            self.done += 1
        self._producer.poll(0)

    def close(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0, f"{self.name} still waits for acknowledgements"

    def _report(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed(error)


class Reader(Activity):
    """A member that stays: polls and commits every second."""

    rest_s = 0.0

    def __init__(self, bootstrap: str, topic: str, group: str, protocol: str) -> None:
        super().__init__(f"{protocol} member of {group}")
        self._consumer = subscribed(bootstrap, topic, group, protocol)
        self._committed_s = time.monotonic()

    def step(self) -> None:
        self.done += taken(self._consumer, STEP_S)
        if time.monotonic() - self._committed_s > 1:
            self._consumer.commit(asynchronous=True)
            self._committed_s = time.monotonic()

    def close(self) -> None:
        self._consumer.close()


class Guests(Activity):
    """Members that come, read something and leave: to a group where others stay, in turn with one of their own."""

    rest_s = 2.0

    def __init__(self, bootstrap: str, topic: str, group: str, protocol: str) -> None:
        super().__init__(f"{protocol} guests of {group}")
        self._bootstrap, self._topic, self._group, self._protocol = bootstrap, topic, group, protocol

    def step(self) -> None:
        group = self._group if self.done % 2 == 0 else f"{self._group}-passing-{self.done}"
        consumer = subscribed(self._bootstrap, self._topic, group, self._protocol)
        deadline, read = time.monotonic() + 2 * DEADLINE_S, 0
        try:
            while read < STAY_RECORDS and not self._stopping.is_set():
                if time.monotonic() > deadline:
                    raise AssertionError(
                        f"a guest read {read} records; owns {consumer.assignment()}; {self._told(group)}"
                    )
                read += taken(consumer, STEP_S)
            if read and consumer.assignment():
                consumer.commit(asynchronous=True)
        finally:
            consumer.close()
        self.done += 1

    def _told(self, group: str) -> str:
        """What the coordinator says about the group."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        found = admin.describe_consumer_groups([group])[group].result(DEADLINE_S)
        members = [(each.member_id, each.assignment.topic_partitions) for each in found.members]
        return f"{group} is {found.state}: {members}"


class Visitors(Activity):
    """Connections that come and go at every broker, a producer of its own life, and an admin client."""

    rest_s = 0.5

    def __init__(self, bootstrap: str, brokers: list[BrokerProcess], topic: str) -> None:
        super().__init__("visitors")
        self._bootstrap, self._brokers, self._topic = bootstrap, brokers, topic

    def step(self) -> None:
        for broker in self._brokers:
            for _ in range(2):
                with Connection(broker.port, host=broker.host) as connection:
                    connection.ask(MetadataRequest(topics=None), MetadataResponse)
                    self.done += 1
        made = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "log_level": 0})
        made.produce(self._topic, bytes(VALUE_BYTES), on_delivery=self._report)
        assert made.flush(DEADLINE_S) == 0, "a visitor's record is not acknowledged"
        AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0}).list_topics(timeout=DEADLINE_S)

    def _report(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed(error)


class Transactions(Activity):
    """Transactional ids that live for ten transactions each, one of which is aborted."""

    rest_s = 0.2
    _lives = count()

    def __init__(self, bootstrap: str, topic: str, *, partitions: int) -> None:
        super().__init__(f"transactions to {topic}")
        self._bootstrap, self._topic, self._partitions = bootstrap, topic, partitions
        self._producer: Any = None

    def step(self) -> None:
        if self.done % 10 == 0 or self._producer is None:
            self._producer = producer(self._bootstrap, f"passing-{next(self._lives)}")
        values = ["." * VALUE_BYTES] * self._partitions
        made, self._producer = self._producer, None  # whoever failed is not used again
        transact(made, self._topic, values, commit=self.done % 10 != 5, partitions=self._partitions)
        self._producer = made
        self.done += 1


def subscribed(bootstrap: str, topic: str, group: str, protocol: str) -> Consumer:
    pace = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000} if protocol == "classic" else {}
    own = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "latest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap, "log_level": 0, "fetch.wait.max.ms": 100, **own, **pace})
    consumer.subscribe([topic])
    return consumer


def taken(consumer: Consumer, within_s: float) -> int:
    """How many records came; an error that is not passing is raised."""
    messages = consumer.consume(100, within_s)
    for message in messages:
        if (error := message.error()) is not None and not error.retriable():
            raise KafkaException(error)
    return sum(message.error() is None for message in messages)
