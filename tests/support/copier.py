"""Consume, transform, produce with librdkafka: the same as TransactionalCopier.java, argument for argument.

Each batch becomes a transaction with its offsets, until standard input ends. Some are aborted on purpose and done
again. Prints `begin|commit|abort ATTEMPT` as it happens; ends with code 3 when its producer is of no use any more.
"""

import faulthandler
import os
import random
import sys
import threading
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

GAVE_UP = 3
BATCH, BATCH_S = 60, 0.2
CALL_S, STUCK_S, TRIES = 15.0, 20.0, 10
STOPPING_S = 45.0  # then it writes where it stands, before its supervisor loses patience
ONE_ABORT_IN = 5
SOON = {"reconnect.backoff.max.ms": 200, "socket.timeout.ms": 5000}


class Copier:
    def __init__(self, bootstrap: str, target: str, totals: int, group: str, id_: str, timeout_ms: int, protocol: str):
        servers = {"bootstrap.servers": bootstrap, **SOON}
        reading = {"isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        pace = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000} if protocol == "classic" else {}
        waits = {"fetch.wait.max.ms": 50, "topic.metadata.refresh.interval.ms": 5000}
        self.consumer = Consumer({**servers, **reading, **pace, **waits, "group.id": group, "group.protocol": protocol})
        writing = {"transactional.id": id_, "transaction.timeout.ms": timeout_ms, "linger.ms": 2}
        self.producer = Producer({**servers, **writing})
        self._target, self._totals = target, totals

    def batch(self) -> list[Message]:
        """What came within a moment; errors of the consumer pass, or they would have ended it."""
        return [message for message in self.consumer.consume(BATCH, BATCH_S) if message.error() is None]

    def copy(self, records: list[Message], attempt: str) -> None:
        report("begin", attempt)
        try:
            self._write(records, attempt)
            if random.randrange(ONE_ABORT_IN) == 0:
                self.producer.flush(CALL_S)
                self._give_up(records, attempt)
                return
            self._send_offsets(records)
            again(lambda: self.producer.commit_transaction(CALL_S))
            report("commit", attempt)
        except KafkaException as failed:
            if not failed.args[0].txn_requires_abort():
                raise
            report("error", str(failed.args[0]))
            self._give_up(records, attempt)

    def _write(self, records: list[Message], attempt: str) -> None:
        self.producer.begin_transaction()
        for record in records:
            value = b"%s copy %d %s" % (attempt.encode(), record.offset(), record.value())
            self.producer.produce(self._target, value, partition=record.partition())
        self.producer.produce(self._target, f"{attempt} total {len(records)}", partition=self._totals)

    def _send_offsets(self, records: list[Message]) -> None:
        """librdkafka waits for ever when the group's coordinator has died (its issues 5456 and 5511)."""
        watchdog = threading.Timer(STUCK_S, die_stuck)
        watchdog.start()
        try:
            metadata = self.consumer.consumer_group_metadata()
            self.producer.send_offsets_to_transaction(ends_of(records), metadata, CALL_S)
        finally:
            watchdog.cancel()

    def _give_up(self, records: list[Message], attempt: str) -> None:
        again(lambda: self.producer.abort_transaction(CALL_S))
        report("abort", attempt)
        firsts = {(m.topic(), m.partition()): m.offset() for m in reversed(records)}
        held = {(each.topic, each.partition) for each in self.consumer.assignment()}
        for place in firsts.keys() & held:
            self.consumer.seek(TopicPartition(*place, firsts[place]))


def ends_of(records: list[Message]) -> list[TopicPartition]:
    ends = {(m.topic(), m.partition()): m.offset() + 1 for m in records}
    return [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]


def again(call: Callable[[], object]) -> None:
    """The call may be made again after a timeout, and must be: nobody knows how the first one ended."""
    for number in range(TRIES):
        try:
            call()
            return
        except KafkaException as failed:
            if not failed.args[0].retriable() or number == TRIES - 1:
                raise
            report("late", str(failed.args[0]))


def die_stuck() -> None:
    report("gave-up", "send_offsets_to_transaction does not return")
    os._exit(GAVE_UP)


def report(what: str, attempt: str) -> None:
    print(what, attempt, flush=True)


def wait_for_end(stopping: threading.Event) -> None:
    sys.stdin.read()
    faulthandler.dump_traceback_later(STOPPING_S)
    stopping.set()


def main(
    bootstrap: str, source: str, target: str, totals: str, group: str, id_: str, life: str, timeout: str, protocol: str
) -> int:
    stopping = threading.Event()
    threading.Thread(target=lambda: wait_for_end(stopping), daemon=True).start()
    copier = Copier(bootstrap, target, int(totals), group, id_, int(timeout), protocol)
    try:
        again(lambda: copier.producer.init_transactions(CALL_S))
        copier.consumer.subscribe([source])
        number = 0
        while not stopping.is_set():
            if records := copier.batch():
                copier.copy(records, f"{life}-{number}")
                number += 1
    except KafkaException as failed:
        report("gave-up", str(failed.args[0]))
        return GAVE_UP
    copier.consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:10]))
