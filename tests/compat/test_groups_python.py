"""Classic groups with the pure Python clients: aiokafka (old request versions) and kafka-python (the newest)."""

import asyncio
import time
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from kafka import KafkaAdminClient, KafkaConsumer
from support.librdkafka import Sent, make_topic, send

BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
DEADLINE_S = 60.0


def fill(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, partitions=2)
    send(bootstrap, topic, [Sent(b"%d" % i, partition=p) for p in (0, 1) for i in range(10)])


def test_aiokafka_shares_commits_and_goes_on(bootstrap: str, name: str) -> None:
    fill(bootstrap, name)

    def consumer() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            name,
            bootstrap_servers=bootstrap,
            group_id=name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
            session_timeout_ms=6000,
        )

    async def until_each_owns_one(members: list[AIOKafkaConsumer]) -> None:
        while sorted(p.partition for member in members for p in member.assignment()) != [0, 1]:
            for member in members:
                await member.getmany(timeout_ms=100)

    async def run() -> None:
        first = consumer()
        await first.start()
        records: list[Any] = []
        while len(records) < 20:
            for part in (await first.getmany(timeout_ms=500)).values():
                records += part
        await first.commit({AioPartition(name, 0): 7, AioPartition(name, 1): (3, "why")})
        assert await first.committed(AioPartition(name, 0)) == 7
        second = consumer()
        await second.start()
        await until_each_owns_one([first, second])
        await first.stop()
        rest: list[Any] = []
        while len(rest) < 10:
            for part in (await second.getmany(timeout_ms=500)).values():
                rest += part
        await second.stop()
        assert {record.offset for record in rest if record.partition == 0} <= {7, 8, 9}

    asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


def read(consumer: KafkaConsumer, count: int) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(records) < count and time.monotonic() < deadline:
        for part in consumer.poll(timeout_ms=1000).values():
            records += part
    return records


def test_kafka_python_goes_on_and_describes(bootstrap: str, name: str) -> None:
    fill(bootstrap, name)
    settings = {
        "bootstrap_servers": bootstrap,
        "group_id": name,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 300,
    }
    first = KafkaConsumer(name, **settings)
    assert len(read(first, 20)) == 20
    first.commit()
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    offsets = admin.list_group_offsets([name])
    assert "10" in str(offsets)
    assert name in str(admin.describe_groups([name]))
    admin.close()
    first.close()
    send(bootstrap, name, [Sent(b"new", partition=1)])
    second = KafkaConsumer(name, **settings)
    assert [(record.partition, record.offset) for record in read(second, 1)] == [(1, 10)]
    second.close()
