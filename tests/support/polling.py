"""Consumers that read on and on while brokers die and come back; what they got ends up in a history."""

import contextlib
import subprocess
import threading
from abc import ABC, abstractmethod
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from support.history import Read
from support.java import program_command
from support.librdkafka import dotted
from support.steady import IMPATIENT_LIBRDKAFKA, PADDING, Silence
from support.waiting import eventually


class PollingConsumer(ABC):
    """Assigned to all partitions of a topic, from their beginning; `reads` grows as records come."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.failure = ""
        self.silence = Silence()
        self._positions: dict[int, int] = {}

    @abstractmethod
    def close(self) -> None: ...

    def wait_for(self, ends: dict[int, int], timeout_s: float) -> None:
        """Until it stands at those offsets, each the next one to be written."""
        goal = {partition: end for partition, end in ends.items() if end > 0}
        eventually(
            lambda: (self.failure, dict(self._positions)),
            lambda seen: bool(seen[0]) or all(seen[1].get(p, 0) >= end for p, end in goal.items()),
            timeout_s=timeout_s,
        )
        assert not self.failure, f"the consumer gave up: {self.failure}"

    def _got(self, read: Read) -> None:
        self.reads.append(read)
        self._positions[read.partition] = read.offset + 1
        self.silence.heard()


class PollingLibrdkafka(PollingConsumer):
    def __init__(self, bootstrap: str, topic: str, *, partitions: int, **settings: str) -> None:
        """Names of settings may have underscores for dots."""
        super().__init__()
        # A reset would hide a loss: it is an error here.
        group = {"group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "error"}
        quick = {**IMPATIENT_LIBRDKAFKA, "fetch.wait.max.ms": 50, "topic.metadata.refresh.interval.ms": 5000}
        del quick["request.timeout.ms"]  # of producers only
        own = {"bootstrap.servers": bootstrap, "check.crcs": True, "log_level": 0}
        self._consumer = Consumer({**own, **group, **quick, **dotted(settings)})
        self._consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        if not self._stopping.is_set():
            self._stopping.set()
            self._thread.join()
            self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(500, 0.05):
                if message.error() is None:
                    self._got(Read(message.partition(), message.offset(), message.value()))
                elif message.error().fatal() or message.error().code() == KafkaError._AUTO_OFFSET_RESET:
                    self.failure = str(message.error())


class PollingJava(PollingConsumer):
    def __init__(self, bootstrap: str, topic: str, *, partitions: int, login: Path | None = None) -> None:
        """`login`: a file of properties."""
        super().__init__()
        files = [] if login is None else [str(login)]
        command = program_command("SteadyConsumer", bootstrap, topic, str(partitions), *files)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None and self._process.stderr is not None
        for line in self._process.stdout:
            partition, offset, value = line.rstrip("\n").split(" ", 2)
            self._got(Read(int(partition), int(offset), value.encode() + PADDING))
        if self._process.wait() > 0:
            self.failure = self._process.stderr.read()[-2000:]
