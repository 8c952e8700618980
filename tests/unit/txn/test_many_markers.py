"""Markers for very many partitions: written in slices, in messages of a limited size."""

import asyncio
import itertools
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from ottla.api import k27_write_txn_markers as k27
from ottla.errors import Code, KafkaError
from ottla.txn.core.messages import PARTITIONS_PER_MESSAGE_MAX, WRITE_MARKERS, Codes, MarkerOrder, Orders
from ottla.txn.exchange import Exchange
from ottla.txn.marker_sender import _Outbox
from ottla.txn.marker_writer import PARTITIONS_PER_SLICE, MarkerWriter


def order(count: int) -> MarkerOrder:
    partitions = [("t", index) for index in range(count)]
    return MarkerOrder(producer_id=1, epoch=0, coordinator_epoch=0, commit=True, partitions=partitions)


class Replicas:
    """Leads none of them."""

    def __init__(self) -> None:
        self.asked = 0

    def require(self, topic: str, index: int) -> Any:
        self.asked += 1
        raise KafkaError(Code.unknown_topic_or_partition, "not here")


@pytest.mark.parametrize("counts", [[10 * PARTITIONS_PER_SLICE], [PARTITIONS_PER_SLICE] * 10])
def test_others_are_served_between_the_slices(counts: list[int]) -> None:
    async def scene() -> None:
        replicas = Replicas()
        writing = asyncio.ensure_future(MarkerWriter(replicas, marked=None).write_all([order(n) for n in counts]))
        steps = [0]
        while not writing.done():
            await asyncio.sleep(0)
            steps.append(replicas.asked)
        assert max(after - before for before, after in itertools.pairwise(steps)) <= PARTITIONS_PER_SLICE
        assert writing.result() == [Code.unknown_topic_or_partition] * sum(counts)

    asyncio.run(scene())


def test_a_message_has_a_limited_number_of_partitions() -> None:
    sent: list[list[int]] = []

    class FarBroker:
        async def write_markers(self, broker_id: int, orders: list[MarkerOrder]) -> list[Code]:
            sent.append([len(each.partitions) for each in orders])
            return [Code.none for each in orders for _ in each.partitions]

    async def scene() -> None:
        outbox = _Outbox(1, FarBroker())  # type: ignore[arg-type]
        counts = [PARTITIONS_PER_MESSAGE_MAX, 1, PARTITIONS_PER_MESSAGE_MAX - 1, 1]
        answers = await asyncio.gather(*(outbox.send(order(count)) for count in counts))
        assert [len(codes) for codes in answers] == counts

    asyncio.run(scene())
    assert sent == [[10_000], [1, 9_999], [1]]


def test_a_message_with_more_is_not_worked_off() -> None:
    async def nobody(orders: Any) -> list[Code]:
        raise AssertionError("too many")

    asking = SimpleNamespace(answers={})
    Exchange(asking, write_here=nobody)  # type: ignore[arg-type]
    data = msgspec.msgpack.encode(Orders([order(PARTITIONS_PER_MESSAGE_MAX + 1)]))
    answer = asyncio.run(asking.answers[WRITE_MARKERS](data))
    assert msgspec.msgpack.decode(answer, type=Codes).codes == [Code.invalid_request]


def test_a_partition_that_a_request_names_twice_is_marked_once() -> None:
    written: list[MarkerOrder] = []

    async def write(one: MarkerOrder) -> list[Code]:
        written.append(one)
        return [Code.none] * len(one.partitions)

    topic = SimpleNamespace(name="t", partition_indexes=[0, 1, 0, 0])
    marker = SimpleNamespace(
        producer_id=1, producer_epoch=0, coordinator_epoch=0, transaction_result=True, topics=[topic]
    )
    answer = asyncio.run(k27._marker(marker, SimpleNamespace(write=write)))  # type: ignore[arg-type]
    assert [one.partitions for one in written] == [[("t", 0), ("t", 1)]]
    assert len(answer["topics"][0]["partitions"]) == 4
