"""Simulated clients: idempotent producers with acks=all that try again as real ones do, and consumers."""

import asyncio
import uuid
from collections.abc import Coroutine
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar

from kio.index import load_response_schema
from ottla.errors import Code, KafkaError
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import PartitionState
from ottla.wire.batch import iterate
from ottla.wire.records import Record, encode
from sim.disk import Crash
from sim.invariants import Referee
from sim.network import Network
from sim.node import SimNode
from sim.virtual_loop import WALL_MS_AT_START
from support.answers import settled
from support.frames import decode_response

__all__ = ["Consumer", "Disconnected", "Producer"]

T = TypeVar("T")
PRODUCE, VERSION = 0, 13  # with topic ids: another topic of the same name is not meant
REQUEST_TIMEOUT_MS = 1500
PATIENCE_S = 2.5
PAUSE_S = 0.4
# What a producer's library may never see while the fleet keeps its promises.
FATAL = frozenset({Code.out_of_order_sequence_number, Code.invalid_producer_epoch, Code.corrupt_message})


class Disconnected(Exception):
    pass


class Client:
    def __init__(self, network: Network, referee: Referee, random: Random) -> None:
        self.network = network
        self.referee = referee
        self.random = random
        self.loses_answers = 0.02
        self.stopping = False
        self._leader_epoch = -1

    def leader(self, topic_id: uuid.UUID, index: int) -> SimNode | None:
        """As some node's metadata says."""
        image = self.some_image()
        topic = image.topics_by_id.get(topic_id) if image is not None else None
        return self.believed(topic.partitions[index]) if topic is not None else None

    def some_image(self) -> Image | None:
        """The metadata of one of those who serve."""
        serving = [node for node in self.network.nodes.values() if node.life is not None and node.life.serves]
        if not serving:
            return None
        life = self.random.choice(serving).life
        assert life is not None
        return life.image

    def believed(self, state: PartitionState) -> SimNode | None:
        """The leader; what is older than what was heard before is not believed."""
        if state.leader_epoch < self._leader_epoch:
            return None
        self._leader_epoch = state.leader_epoch
        return self.network.nodes.get(state.leader)

    async def ask(self, node: SimNode, question: Coroutine[Any, Any, T]) -> T:
        await asyncio.sleep(self.network.delay())
        life = node.life
        if life is None or not life.serves:
            question.close()
            raise Disconnected
        task = self.network.loop.within(life.process, question, data=True)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may answer when nobody listens
        await asyncio.wait([task], timeout=PATIENCE_S)
        await asyncio.sleep(self.network.delay())
        if not task.done() or self.random.random() < self.loses_answers:
            raise Disconnected
        try:
            return task.result()
        except Crash:
            raise Disconnected from None


class Producer(Client):
    def __init__(
        self,
        number: int,
        topic_id: uuid.UUID,
        index: int,
        network: Network,
        referee: Referee,
        random: Random,
        *,
        keys: int = 0,
    ) -> None:
        """`keys`: how many different ones; 0 for records without."""
        super().__init__(network, referee, random)
        self.number, self.topic_id, self.index, self.keys = number, topic_id, index, keys
        self.sent = 0
        self.acknowledged: list[tuple[int, int]] = []

    async def run(self) -> None:
        while not self.stopping:
            count = self.random.randint(1, 3)
            batch = self._batch(count)
            while not await self._send(batch, count):
                if self.stopping:
                    return
                await asyncio.sleep(self.random.random() * PAUSE_S)
            self.sent += count
            await asyncio.sleep(self.random.random() * PAUSE_S)

    def _batch(self, count: int) -> bytes:
        values = [f"{self.number}:{self.sent + each}".encode() for each in range(count)]
        rows = [Record(each, WALL_MS_AT_START, self._key(), value) for each, value in enumerate(values)]
        return encode(rows, producer=(1000 + self.number, 0, self.sent))

    def _key(self) -> bytes | None:
        return b"%d" % self.random.randrange(self.keys) if self.keys else None

    async def _send(self, batch: bytes, count: int) -> bool:
        node = self.leader(self.topic_id, self.index)
        if node is None:
            return False
        try:
            code, base_offset = await self.ask(node, self._produce(node, batch))
        except Disconnected:
            return False
        if code in FATAL:
            self.referee.object(f"producer {self.number} gets {code.name} for sequence {self.sent}")
        if code is Code.none:
            self.acknowledged += [(self.sent + each, base_offset + each) for each in range(count)]
            self.referee.note(f"producer {self.number} has {self.sent} to {self.sent + count - 1} at {base_offset}")
        return code in (Code.none, Code.duplicate_sequence_number)

    async def _produce(self, node: SimNode, batch: bytes) -> tuple[Code, int]:
        return await produce(node, self.topic_id, self.index, batch)


async def produce(node: SimNode, topic_id: uuid.UUID, index: int, batch: bytes) -> tuple[Code, int]:
    """By the broker's own handler, inside the node."""
    assert node.life is not None
    if node.life.shared is None:
        raise Disconnected
    data = SimpleNamespace(index=index, records=memoryview(bytearray(batch)))
    request = SimpleNamespace(
        acks=-1,
        timeout=REQUEST_TIMEOUT_MS,
        transactional_id=None,
        topic_data=[SimpleNamespace(topic_id=topic_id.bytes, partition_data=[data])],
    )
    handle, call = node.life.handler(PRODUCE, VERSION)
    parts = await settled(handle(request, call))
    assert parts is not None
    response = decode_response(b"".join(map(bytes, parts))[4:], load_response_schema(PRODUCE, VERSION))
    (result,) = response.responses[0].partition_responses
    return Code(int(result.error_code)), result.base_offset


class Consumer(Client):
    """Reads from the leader up to its high watermark; what it was given must stay what it was."""

    def __init__(self, topic_id: uuid.UUID, index: int, network: Network, referee: Referee, random: Random) -> None:
        super().__init__(network, referee, random)
        self.topic_id, self.index = topic_id, index
        self.offset = 0

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self.random.random() * PAUSE_S * 2)
            node = self.leader(self.topic_id, self.index)
            if node is None:
                continue
            try:
                data = await self.ask(node, self._fetch(node))
            except (Disconnected, KafkaError):
                continue
            known = self.referee.batches.setdefault((self.topic_id.int, self.index), {})
            for batch in iterate(data):
                found = bytes(batch.data)
                if known.setdefault(batch.base_offset, found) != found:
                    self.referee.object(f"a consumer reads another batch at {batch.base_offset} than was committed")
                self.offset = batch.last_offset + 1

    async def _fetch(self, node: SimNode) -> bytes:
        if node.life is None or node.life.host is None:
            raise Disconnected
        partition = node.life.host.require(self.topic_id.bytes, self.index)
        partition.require_leader()
        if self.offset > partition.high_watermark:
            return b""  # a new leader does not know yet how much is committed
        limits: dict[str, Any] = {"size_bytes_max": 1 << 16, "whole_first": True}
        data = partition.read(start=self.offset, end=partition.high_watermark, **limits)
        return data or b""
