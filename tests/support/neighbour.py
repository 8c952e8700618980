"""A well-behaved producer and consumer beside an attack: how long their records take.

`Neighbour` runs this file as a process of its own, so that what it measures is the broker and not the test. A record is
sent every PERIOD_S with acks=all and waited for by its delivery report and by a consumer that follows the end.
"""

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, Producer, TopicPartition
from support.metronome import QUIET, Metronomes, Noise

PERIOD_S = 0.01
RECORDS_MIN = 200
READY_TIMEOUT_S = 30.0
P99_MS_MAX = 100.0
WORST_MS_MAX = 500.0


@dataclass(frozen=True)
class Seen:
    """Milliseconds from sending to the acknowledgement and to the consumer; what did not arrive counts as lost."""

    acknowledged_ms: list[float]
    consumed_ms: list[float]
    sent: int
    errors: list[str]
    noise: Noise = QUIET

    def check(self) -> None:
        """What a neighbour may expect whatever others do, on a machine that is itself so late."""
        assert not self.errors, self.errors
        assert len(self.acknowledged_ms) == len(self.consumed_ms) == self.sent > 0, self.summary()
        for times in (self.acknowledged_ms, self.consumed_ms):
            assert percentile(times, 0.99) <= P99_MS_MAX + self.noise.p99_ms, self.summary()
            assert max(times) <= WORST_MS_MAX + self.noise.worst_ms, self.summary()

    def summary(self) -> str:
        kinds = (("acknowledged", self.acknowledged_ms), ("consumed", self.consumed_ms))
        return (
            f"{self.sent} sent; "
            + "; ".join(
                f"{name} {len(times)}, p50 {percentile(times, 0.5):.1f}, p99 {percentile(times, 0.99):.1f}, "
                f"worst {max(times, default=0):.1f} ms"
                for name, times in kinds
            )
            + f"; {self.noise}"
        )


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)] if times else 0.0


class Neighbour:
    """It runs until `finish`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        command = [sys.executable, __file__, bootstrap, topic]
        environment = {"PYTHONPATH": str(Path(__file__).parent.parent)}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the neighbour could not begin"
        self._metronomes = Metronomes()

    def finish(self) -> Seen:
        out, _ = self._process.communicate(timeout=60)
        return Seen(**json.loads(out), noise=self._metronomes.finish())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._metronomes.close()


class Traffic:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._sent_at: list[float] = []
        self._acknowledged: dict[int, float] = {}
        self._consumed: dict[int, float] = {}
        self._errors: list[str] = []
        self._stopping = threading.Event()
        self._done = threading.Event()
        quiet = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._producer = Producer({**quiet, "acks": "all", "linger.ms": 0})
        self._consumer = Consumer(
            {**quiet, "group.id": f"{topic}-neighbour", "fetch.wait.max.ms": 100, "enable.auto.commit": False}
        )

    def begin(self) -> None:
        """Both sides have connections before anything is measured."""
        self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_END)])
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._consumed:
            assert time.monotonic() < deadline, "no record came through"
            self._send()
            self._producer.flush(5)
            self._take(self._consumer.poll(0.2))
        while (message := self._consumer.poll(0.5)) is not None:
            self._take(message)
        self._sent_at, self._acknowledged, self._consumed, self._errors = [], {}, {}, []

    def run(self) -> Seen:
        consuming = threading.Thread(target=self._consume)
        consuming.start()
        next_at = time.monotonic()
        while not self._stopping.is_set() or len(self._sent_at) < RECORDS_MIN:
            self._send()
            next_at += PERIOD_S
            while (left_s := next_at - time.monotonic()) > 0:
                self._producer.poll(left_s)
        self._producer.flush(30)
        self._done.set()
        consuming.join()
        return Seen(self._times(self._acknowledged), self._times(self._consumed), len(self._sent_at), self._errors)

    def stop(self) -> None:
        self._stopping.set()

    def _send(self) -> None:
        number = len(self._sent_at)
        self._sent_at.append(time.monotonic())

        def report(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self._errors.append(str(error))
            else:
                self._acknowledged[number] = time.monotonic()

        self._producer.produce(self._topic, str(number).encode(), partition=0, on_delivery=report)

    def _consume(self) -> None:
        give_up_at: float | None = None
        while give_up_at is None or (len(self._consumed) < len(self._sent_at) and time.monotonic() < give_up_at):
            if give_up_at is None and self._done.is_set():
                give_up_at = time.monotonic() + 30
            self._take(self._consumer.poll(0.1))

    def _take(self, message: Message | None) -> None:
        if message is not None and message.error() is None:
            self._consumed[int(message.value() or b"0")] = time.monotonic()

    def _times(self, arrived: dict[int, float]) -> list[float]:
        return [round((at - self._sent_at[number]) * 1000, 2) for number, at in arrived.items()]


def main(bootstrap: str, topic: str) -> None:
    traffic = Traffic(bootstrap, topic)
    traffic.begin()
    print("ready", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), traffic.stop()), daemon=True).start()
    seen = traffic.run()
    measured = {
        "acknowledged_ms": seen.acknowledged_ms,
        "consumed_ms": seen.consumed_ms,
        "sent": seen.sent,
        "errors": seen.errors,
    }
    print(json.dumps(measured), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
