"""Clients that go on and on while the broker dies and comes back; what they sent and read ends up in a history."""

import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer
from support.history import OFFSET_UNKNOWN, Send
from support.java import program_command
from support.waiting import eventually

PARTITIONS = 2
RECORDS_PER_SECOND = 4000
FINISH_TIMEOUT_S = 90.0


PADDING = b"." * 200
# A client that waits half a minute for a broker that is stopped would sleep through most faults.
IMPATIENT_CONSUMER = {"reconnect.backoff.max.ms": 200, "socket.timeout.ms": 5000}
IMPATIENT_LIBRDKAFKA = {**IMPATIENT_CONSUMER, "request.timeout.ms": 3000}
REFUSALS = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}


def value_of(producer: str, number: int) -> bytes:
    return b"%s-%d" % (producer.encode(), number) + PADDING


class Silence:
    """The longest time in which nothing was heard. Also silence that still goes on counts."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._last_s = time.monotonic()
        self._longest_s = 0.0

    def heard(self) -> None:
        now = time.monotonic()
        self._longest_s = max(self._longest_s, now - self._last_s)
        self._last_s = now

    @property
    def longest_s(self) -> float:
        return max(self._longest_s, time.monotonic() - self._last_s)


class SteadyProducer(ABC):
    """Sends numbered values to its partitions in turn until `finish`; acks=all and idempotence on."""

    acknowledged = 0

    def __init__(self) -> None:
        self.silence = Silence()

    def _heard(self) -> None:
        self.acknowledged += 1
        self.silence.heard()

    @abstractmethod
    def finish(self) -> list[Send]:
        """Stops, waits for what is under way, and returns the history in sending order."""

    @abstractmethod
    def check_alive(self) -> None:
        """AssertionError when it gave up."""

    def wait_for_progress(self, records: int, timeout_s: float) -> None:
        """Until that many more records are acknowledged."""
        goal, deadline = self.acknowledged + records, time.monotonic() + timeout_s
        while self.acknowledged < goal:
            self.check_alive()
            assert time.monotonic() < deadline, f"only {self.acknowledged} of {goal} acknowledged within {timeout_s} s"
            time.sleep(0.01)


class SteadyLibrdkafka(SteadyProducer):
    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partitions: int = PARTITIONS,
        rate: int = RECORDS_PER_SECOND,
        name: str = "rd",
        login: Mapping[str, Any] | None = None,
    ) -> None:
        """`login`: librdkafka's settings of who it is."""
        super().__init__()
        self._topic, self._partitions, self._rate, self._name = topic, partitions, rate, name
        self._offsets: dict[int, int] = {}
        self._sent = 0
        self._error: KafkaError | None = None
        self.refusals: list[KafkaError] = []
        """Logins and requests that were refused, also those that it got over."""
        self._stopping = threading.Event()
        settings = {"enable.idempotence": True, "acks": "all", "linger.ms": 2, **IMPATIENT_LIBRDKAFKA}
        quiet = {"log_level": 0, "error_cb": self._failed}
        self._producer = Producer({"bootstrap.servers": bootstrap, **settings, **quiet, **(login or {})})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> list[Send]:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(FINISH_TIMEOUT_S) == 0, "librdkafka still waits for acknowledgements"
        self.check_alive()
        return [
            Send(self._name, n % self._partitions, value_of(self._name, n), self._offsets.get(n))
            for n in range(self._sent)
        ]

    def check_alive(self) -> None:
        assert self._error is None, f"librdkafka gave up: {self._error}"

    def _run(self) -> None:
        while not self._stopping.is_set():
            for _ in range(max(1, self._rate // 100)):
                self._send(self._sent)
            self._producer.poll(0.01)

    def _send(self, number: int) -> None:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()  # None after a retry that the broker knew and whose place it had forgotten
                self._offsets[number] = OFFSET_UNKNOWN if offset is None else offset
                self._heard()
            else:
                self._error = error

        try:
            value, partition = value_of(self._name, number), number % self._partitions
            self._producer.produce(self._topic, value, partition=partition, on_delivery=report)
            self._sent += 1
        except BufferError:
            self._producer.poll(0.05)

    def _failed(self, error: KafkaError) -> None:
        if error.fatal():
            self._error = error
        elif error.code() in REFUSALS:
            self.refusals.append(error)


class SteadyConsumer:
    """One member of a group, which commits what it has read, and may go on by another listener: `move`."""

    def __init__(self, topic: str, group: str, conf: Mapping[str, str]) -> None:
        self._topic, self._group = topic, group
        self.reads: dict[tuple[int, int], bytes] = {}
        """By partition and offset."""
        self.errors: list[KafkaError] = []
        """What a client does not get over by itself."""
        self._begin(conf)

    def move(self, conf: Mapping[str, str]) -> None:
        self.stop()
        self._begin(conf)

    def stop(self) -> None:
        """It commits, and leaves its group."""
        self._stopping.set()
        self._thread.join()

    def wait_for_progress(self, records: int, timeout_s: float) -> None:
        goal = len(self.reads) + records
        eventually(lambda: len(self.reads), lambda seen: seen >= goal, timeout_s=timeout_s)

    def _begin(self, conf: Mapping[str, str]) -> None:
        own = {"group.id": self._group, "auto.offset.reset": "earliest", "session.timeout.ms": 10_000}
        quiet = {"log_level": 0, "error_cb": self._failed}
        self._stopping = threading.Event()
        consumer = Consumer({**IMPATIENT_CONSUMER, **own, **quiet, **conf})
        self._thread = threading.Thread(target=self._run, args=(consumer,), daemon=True)
        self._thread.start()

    def _run(self, consumer: Consumer) -> None:
        consumer.subscribe([self._topic])
        while not self._stopping.is_set():
            message = consumer.poll(0.1)
            if message is None:
                continue
            if (error := message.error()) is not None:
                self._failed(error)
            else:
                self.reads[int(message.partition() or 0), int(message.offset() or 0)] = message.value() or b""
        consumer.close()

    def _failed(self, error: KafkaError) -> None:
        if error.fatal() or error.code() in REFUSALS:
            self.errors.append(error)


class SteadyJava(SteadyProducer):
    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partitions: int = PARTITIONS,
        rate: int = RECORDS_PER_SECOND,
        name: str = "java",
        login: Path | None = None,
    ) -> None:
        """`login`: a file of properties."""
        super().__init__()
        self._name = name
        files = [] if login is None else [str(login)]
        command = program_command("SteadyProducer", bootstrap, topic, str(partitions), str(rate), name, *files)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self._sends: dict[int, Send] = {}
        self._failures: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def finish(self) -> list[Send]:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join(FINISH_TIMEOUT_S)
        assert self._process.wait(5) == 0, "the Java producer did not end well"
        self.check_alive()
        return [self._sends[number] for number in sorted(self._sends)]

    def check_alive(self) -> None:
        assert not self._failures, f"the Java producer gave up: {self._failures[0]}"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            kind, number, partition, offset = line.rstrip("\n").split(" ", 3)
            value = value_of(self._name, int(number))
            acknowledged = int(offset) if kind == "ack" else None
            self._sends[int(number)] = Send(self._name, int(partition), value, acknowledged)
            if kind == "ack":
                self._heard()
            else:
                self._failures.append(line)
