"""Transactional producers in pure Python: aiokafka with old request versions, kafka-python with the newest."""

import asyncio

from aiokafka import AIOKafkaProducer
from kafka import KafkaProducer
from support.librdkafka import make_topic
from support.transactions import read_all

DEADLINE_S = 30.0


def test_aiokafka(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        await producer.start()
        try:
            for number in range(4):
                await producer.begin_transaction()
                for i in range(10):
                    await producer.send_and_wait(name, f"{number}-{i}".encode(), partition=0)
                await (producer.commit_transaction() if number % 2 == 0 else producer.abort_transaction())
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(run(), DEADLINE_S))
    assert read_all(bootstrap, name) == [f"{number}-{i}" for number in (0, 2) for i in range(10)]


def test_kafka_python(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        sent = [producer.send(name, f"{number}-{i}".encode(), partition=0) for i in range(10)]
        for one in sent:
            one.get(DEADLINE_S)
        if number % 2 == 0:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    assert read_all(bootstrap, name) == [f"{number}-{i}" for number in (0, 2) for i in range(10)]
