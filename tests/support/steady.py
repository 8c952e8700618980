"""Producers that go on and on while the broker dies and comes back; what they sent ends up in a history."""

import subprocess
import threading
import time
from abc import ABC, abstractmethod

from confluent_kafka import KafkaError, Message, Producer
from support.history import Send
from support.java import program_command

PARTITIONS = 2
RECORDS_PER_SECOND = 4000
FINISH_TIMEOUT_S = 90.0


class SteadyProducer(ABC):
    """Sends numbered values to both partitions in turn until told to finish; acks=all and idempotence on."""

    acknowledged = 0

    @abstractmethod
    def finish(self) -> list[Send]:
        """Stops, waits for what is under way, and tells the history in sending order."""

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
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._offsets: dict[int, int] = {}
        self._sent = 0
        self._error: KafkaError | None = None
        self._stopping = threading.Event()
        settings = {"enable.idempotence": True, "acks": "all", "linger.ms": 2, "reconnect.backoff.max.ms": 200}
        quiet = {"log_level": 0, "error_cb": self._failed}
        self._producer = Producer({"bootstrap.servers": bootstrap, **settings, **quiet})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> list[Send]:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(FINISH_TIMEOUT_S) == 0, "librdkafka still waits for acknowledgements"
        self.check_alive()
        return [Send("rd", n % PARTITIONS, b"rd-%d" % n + b"." * 200, self._offsets.get(n)) for n in range(self._sent)]

    def check_alive(self) -> None:
        assert self._error is None, f"librdkafka gave up: {self._error}"

    def _run(self) -> None:
        while not self._stopping.is_set():
            for _ in range(RECORDS_PER_SECOND // 100):
                self._send(self._sent)
            self._producer.poll(0.01)

    def _send(self, number: int) -> None:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._offsets[number] = message.offset()
                self.acknowledged += 1
            else:
                self._error = error

        try:
            value = b"rd-%d" % number + b"." * 200
            self._producer.produce(self._topic, value, partition=number % PARTITIONS, on_delivery=report)
            self._sent += 1
        except BufferError:
            self._producer.poll(0.05)

    def _failed(self, error: KafkaError) -> None:
        if error.fatal():
            self._error = error


class SteadyJava(SteadyProducer):
    def __init__(self, bootstrap: str, topic: str) -> None:
        command = program_command("SteadyProducer", bootstrap, topic, str(PARTITIONS), str(RECORDS_PER_SECOND))
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
            value = b"java-%d" % int(number) + b"." * 200
            acknowledged = int(offset) if kind == "ack" else None
            self._sends[int(number)] = Send("java", int(partition), value, acknowledged)
            if kind == "ack":
                self.acknowledged += 1
            else:
                self._failures.append(line)
