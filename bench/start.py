"""From the start of the process to the first acknowledged record, on a folder that holds a topic already."""

import time
from collections.abc import Iterator
from datetime import timedelta

from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from support.frames import Connection
from support.raw_batches import RawBatch

from bench.context import Context, fresh_topic
from bench.rows import START, Reading

POLL_S = 0.002
DEADLINE_S = 60.0


def run(context: Context) -> Iterator[Reading]:
    with context.broker() as broker:
        fresh_topic(broker, "first")
        broker.stop()
        begin = time.perf_counter()
        broker.start(wait=False)
        while not acknowledged(broker.port, "first"):
            assert broker.running and time.perf_counter() - begin < DEADLINE_S, broker.log_tail()
            time.sleep(POLL_S)
        yield Reading("start to first acknowledged record", "s", time.perf_counter() - begin, START)


def acknowledged(port: int, topic: str) -> bool:
    partition = PartitionProduceData(index=0, records=RawBatch().encode())
    data = (TopicProduceData(name=topic, partition_data=(partition,)),)
    try:
        with Connection(port) as connection:
            request = ProduceRequest(acks=-1, timeout=timedelta(seconds=5), topic_data=data)
            answer = connection.ask(request, ProduceResponse)
            return int(answer.responses[0].partition_responses[0].error_code) == 0
    except OSError:
        return False
