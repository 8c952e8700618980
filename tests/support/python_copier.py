"""Consume, transform, produce with clients in pure Python: as TransactionalCopier.java, after the kind of client.

`python -m support.python_copier kafka-python|aiokafka BOOTSTRAP SOURCE TARGET …`. aiokafka does not say on whose behalf
it commits offsets, so that a member whom the group has forgotten is not refused: its copies may be there twice.
"""

import asyncio
import random
import sys
import threading
from typing import Any, NamedTuple

import aiokafka
import kafka
from kafka.errors import KafkaError
from support.copier import GAVE_UP, ONE_ABORT_IN, report

BATCH, POLL_MS, CALL_S = 60, 200, 30.0
stopping = threading.Event()


class Task(NamedTuple):
    bootstrap: str
    source: str
    target: str
    totals: int
    group: str
    id: str
    life: str
    timeout_ms: int

    @property
    def reading(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap,
            "group_id": self.group,
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": 10_000,
            "heartbeat_interval_ms": 500,
            "max_poll_records": BATCH,
        }

    @property
    def writing(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap,
            "transactional_id": self.id,
            "transaction_timeout_ms": self.timeout_ms,
        }

    def values(self, records: list[Any], attempt: str) -> list[tuple[bytes, int]]:
        """What is to be written, and where."""
        copies = [(b"%s copy %d %s" % (attempt.encode(), one.offset, one.value), one.partition) for one in records]
        return [*copies, (f"{attempt} total {len(records)}".encode(), self.totals)]


def aborts_on_purpose() -> bool:
    return random.randrange(ONE_ABORT_IN) == 0


class KafkaPythonCopier:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._consumer = kafka.KafkaConsumer(**task.reading)
        self._producer = kafka.KafkaProducer(**task.writing)

    def run(self) -> None:
        self._producer.init_transactions()
        self._consumer.subscribe([self._task.source])
        number = 0
        while not stopping.is_set():
            records = [one for part in self._consumer.poll(POLL_MS).values() for one in part]
            if records:
                self._copy(records, f"{self._task.life}-{number}")
                number += 1
        self._consumer.close()
        self._producer.close()

    def _copy(self, records: list[Any], attempt: str) -> None:
        report("begin", attempt)
        try:
            self._producer.begin_transaction()
            sent = [
                self._producer.send(self._task.target, value, partition=partition)
                for value, partition in self._task.values(records, attempt)
            ]
            for one in sent:
                one.get(CALL_S)
            if not aborts_on_purpose():
                metadata = self._consumer.group_metadata()
                self._producer.send_offsets_to_transaction(self._ends(records), metadata)
                self._producer.commit_transaction()
                report("commit", attempt)
                return
        except KafkaError as failed:
            report("error", repr(failed))
        self._producer.abort_transaction()  # raises when the producer is of no use any more
        report("abort", attempt)
        self._go_back(records)

    def _ends(self, records: list[Any]) -> dict[Any, Any]:
        return {
            kafka.TopicPartition(one.topic, one.partition): kafka.OffsetAndMetadata(one.offset + 1, "", -1)
            for one in records
        }

    def _go_back(self, records: list[Any]) -> None:
        firsts = {kafka.TopicPartition(one.topic, one.partition): one.offset for one in reversed(records)}
        for place in firsts.keys() & self._consumer.assignment():
            self._consumer.seek(place, firsts[place])


class AiokafkaCopier:
    def __init__(self, task: Task) -> None:
        self._task = task

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(self._task.source, **self._task.reading)
        producer = aiokafka.AIOKafkaProducer(**self._task.writing)
        await consumer.start()
        await producer.start()
        number = 0
        while not stopping.is_set():
            records = [one for part in (await consumer.getmany(timeout_ms=POLL_MS)).values() for one in part]
            if records:
                await self._copy(consumer, producer, records, f"{self._task.life}-{number}")
                number += 1
        await consumer.stop()
        await producer.stop()

    async def _copy(self, consumer: Any, producer: Any, records: list[Any], attempt: str) -> None:
        report("begin", attempt)
        try:
            await producer.begin_transaction()
            for value, partition in self._task.values(records, attempt):
                await producer.send(self._task.target, value, partition=partition)
            if not aborts_on_purpose():
                ends = {aiokafka.TopicPartition(one.topic, one.partition): one.offset + 1 for one in records}
                await producer.send_offsets_to_transaction(ends, self._task.group)
                await producer.commit_transaction()
                report("commit", attempt)
                return
            await producer.flush()
        except aiokafka.errors.KafkaError as failed:
            report("error", repr(failed))
        await producer.abort_transaction()
        report("abort", attempt)
        firsts = {aiokafka.TopicPartition(one.topic, one.partition): one.offset for one in reversed(records)}
        for place in firsts.keys() & consumer.assignment():
            consumer.seek(place, firsts[place])


KINDS = {"kafka-python": KafkaPythonCopier, "aiokafka": AiokafkaCopier}


def main(kind: str, *arguments: str) -> int:
    bootstrap, source, target, totals, group, id_, life, timeout_ms, _ = arguments
    threading.Thread(target=lambda: (sys.stdin.read(), stopping.set()), daemon=True).start()
    task = Task(bootstrap, source, target, int(totals), group, id_, life, int(timeout_ms))
    try:
        KINDS[kind](task).run()
    except (KafkaError, aiokafka.errors.KafkaError) as failed:
        report("gave-up", repr(failed))
        return GAVE_UP
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
