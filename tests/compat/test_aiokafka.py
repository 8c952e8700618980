"""aiokafka: pure Python, old non-flexible request versions."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import MessageSizeTooLargeError
from support.librdkafka import make_topic

DEADLINE_S = 30.0
STAMP = 1_700_000_000_000


async def consume(bootstrap: str, topic: str, count: int, **settings) -> list:  # type: ignore[no-untyped-def,type-arg]
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, **settings)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        records = []
        while len(records) < count:
            batch = await asyncio.wait_for(consumer.getmany(timeout_ms=1000), DEADLINE_S)
            records += batch.get(partition, [])
        return records
    finally:
        await consumer.stop()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_produce_and_consume(bootstrap: str, name: str, codec: str | None, idempotent: bool) -> None:
    make_topic(bootstrap, name)

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=codec, enable_idempotence=idempotent, acks="all", linger_ms=5
        )
        await producer.start()
        try:
            extras = {"headers": [("h", b"1"), ("h", b"2")], "timestamp_ms": STAMP + 123}
            first = await producer.send_and_wait(name, b"first", key=b"k", partition=0, **extras)
            pending = [await producer.send(name, b"%d" % i * 20, partition=0) for i in range(500)]
            metadata = await asyncio.wait_for(asyncio.gather(*pending), DEADLINE_S)
        finally:
            await producer.stop()
        assert (first.offset, first.partition) == (0, 0)
        assert [m.offset for m in metadata] == list(range(1, 501))
        records = await consume(bootstrap, name, 501)
        assert (records[0].key, records[0].value, records[0].timestamp) == (b"k", b"first", STAMP + 123)
        assert list(records[0].headers) == [("h", b"1"), ("h", b"2")]
        assert [r.value for r in records[1:]] == [b"%d" % i * 20 for i in range(500)]
        assert [r.offset for r in records] == list(range(501))

    asyncio.run(run())


def test_offsets_and_times(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)

    async def run() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks=1) as producer:
            for i in range(5):
                await producer.send_and_wait(name, None, key=b"k", partition=0, timestamp_ms=STAMP + i * 100)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            partition = TopicPartition(name, 0)
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 5}
            found = await consumer.offsets_for_times({partition: 1_700_000_000_250})
            assert (found[partition].offset, found[partition].timestamp) == (3, 1_700_000_000_300)

    asyncio.run(run())


def test_too_large_message(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, max_message_bytes=2000)

    async def run() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(name, b"x" * 5000, partition=0)
            assert (await producer.send_and_wait(name, b"x", partition=0)).offset == 0

    asyncio.run(run())
