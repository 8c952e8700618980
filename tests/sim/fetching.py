"""Consumers through the Fetch API: the request is encoded and decoded as on the wire, the answer is sent in pieces.

What a Region stands for is read when it is sent, as ottla.net.outbox does: segments may be deleted, rewritten or cut
meanwhile. A consumer keeps one position per partition and finds

    no other batch than was committed (byte by byte, or record by record where compaction rewrites batches),
    no gap that neither retention nor compaction explains, nothing twice, nothing out of order.
"""

import asyncio
import io
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_writer
from ottla.api.call import Answer
from ottla.api.registry import load_all
from ottla.errors import Code
from ottla.replica.partition import Partition
from ottla.wire.batch import Batch, crc_matches, iterate
from sim.history import Cleanup, History
from sim.invariants import Referee
from sim.network import Network
from sim.node import Life, SimNode
from sim.workload import Client, Disconnected
from support.answers import settled
from support.frames import decode_response

__all__ = ["FetchConsumer", "handled", "sent"]

FETCH, VERSIONS = 1, (13, 17, 18)
PAUSE_S = 0.6
PIECE_BYTES_MAX = 200
SLOW = 0.3  # how often somebody takes an answer slowly
BUFFERS = (bytes, bytearray, memoryview)
PIECE_PAUSE_S = 0.5
# The position is answered by another leader, epoch, or replica; none of these says anything about records.
PASSES = frozenset(
    {
        Code.not_leader_or_follower,
        Code.fenced_leader_epoch,
        Code.unknown_leader_epoch,
        Code.unknown_topic_id,
        Code.unknown_topic_or_partition,
        Code.inconsistent_topic_id,
        Code.offset_not_available,
        Code.replica_not_available,
        Code.kafka_storage_error,
        Code.leader_not_available,
    }
)
SESSION_IS_GONE = frozenset({Code.fetch_session_id_not_found, Code.invalid_fetch_session_epoch})


async def sent(life: Life, parts: Answer, random: Random | None) -> bytes:
    """What arrives at a client of the parts of an answer. Within the node's process.

    With a `random`, some clients take it slowly.
    """
    assert parts is not None
    is_slow = random is not None and any(not isinstance(part, BUFFERS) for part in parts) and random.random() < SLOW
    arrived = bytearray()
    for part in parts:
        if isinstance(part, BUFFERS):
            arrived += part
            continue
        begin = 0
        while begin < len(part):
            if is_slow and random is not None:
                await asyncio.sleep(random.random() * PIECE_PAUSE_S)
            size = min(len(part) - begin, PIECE_BYTES_MAX if is_slow else len(part))
            data = part.read_now(begin, size)
            if data is None:
                data = await life.threads.run(part.read, begin, size)
            if len(data) < size:
                raise Disconnected  # the log was cut meanwhile
            arrived += data
            begin += size
    return bytes(arrived)


async def handled(node: SimNode, api_key: tuple[int, int], request: Any, random: Random | None = None) -> Any:
    """The answer of the node's own handler, as it arrives and as kio reads it."""
    key, version = api_key
    life = node.life
    assert life is not None
    if life.shared is None:  # its listeners are not open
        raise Disconnected
    handle, call = life.handler(key, version)
    try:
        parts = await settled(handle(request, call))
    except Exception as error:
        parts = call.failure(error)  # type: ignore[arg-type]
    data = await sent(life, parts, random)
    return decode_response(data[4:], load_response_schema(key, version))


@dataclass
class Place:
    """A partition, as far as a consumer has read it."""

    history: History
    offset: int = 0
    leader_epoch: int = -1  # the highest that was heard of
    last_epoch: int = -1  # of the last batch that was read
    taken: set[int] = field(default_factory=set)


class FetchConsumer(Client):
    """Reads all partitions of a topic from whoever leads or follows them, as some node's metadata says."""

    def __init__(
        self,
        topic_id: uuid.UUID,
        histories: list[History],
        network: Network,
        referee: Referee,
        random: Random,
    ) -> None:
        super().__init__(network, referee, random)
        self.topic_id = topic_id
        self.places = [Place(history) for history in histories]
        self._isolation = random.randint(0, 1)
        self._uses_session = random.random() < 0.5
        self._states_epoch = random.random() < 0.8
        self._from_followers = random.random() < 0.5
        self._session: tuple[str, int, int] | None = None  # process, id, next epoch
        self._sent: dict[int, tuple[int, int, int]] = {}
        self.version = random.choice(VERSIONS)
        self.fetched = 0

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self.random.random() * PAUSE_S)
            await self.poll()

    async def poll(self) -> None:
        node = self._choose()
        life = node.life if node is not None else None
        if node is None or life is None:
            return
        try:
            answer = await self.ask(node, self._fetch(node, life))
        except Disconnected:
            self._session = None
            return
        if answer.error_code in SESSION_IS_GONE:
            self._session = None
            return
        if self._uses_session and answer.session_id:
            epoch = 1 if self._session is None else self._session[2] + 1
            self._session = (life.process.name, answer.session_id, epoch)
        for topic in answer.responses:
            for part in topic.partitions:
                self._take(node, life, self.places[part.partition_index], part)

    def _choose(self) -> SimNode | None:
        """One who leads, or follows, at least one partition, by some node's metadata; epochs are remembered."""
        image = self.some_image()
        topic = image.topics_by_id.get(self.topic_id) if image is not None else None
        if topic is None:
            return None
        candidates: list[int] = []
        for place, state in zip(self.places, topic.partitions, strict=True):
            if state.leader_epoch >= place.leader_epoch:
                place.leader_epoch = state.leader_epoch
                candidates += state.replicas if self._from_followers else [state.leader]
        return self.network.nodes.get(self.random.choice(candidates)) if candidates else None

    # -- asking, inside the node

    async def _fetch(self, node: SimNode, life: Life) -> Any:
        return await handled(node, (FETCH, self.version), self._request(life), self.random)

    def _request(self, life: Life) -> Any:
        """As the broker decodes it from the wire."""
        kind = load_request_schema(FETCH, self.version)
        goes_on = self._session is not None and self._session[0] == life.process.name
        if not goes_on:
            self._session, self._sent = None, {}
        wanted = {index: self._wanted(place) for index, place in enumerate(self.places)}
        news = {index: one for index, one in wanted.items() if self._sent.get(index) != one}
        self._sent = wanted
        message = kind(
            max_wait=timedelta(milliseconds=self.random.choice((0, 0, 300))),
            min_bytes=self.random.choice((1, 1, 500)),
            max_bytes=self.random.choice((300, 1 << 20)),
            isolation_level=self._isolation,
            session_id=self._session[1] if self._session is not None else 0,
            session_epoch=self._session[2] if self._session is not None else 0 if self._uses_session else -1,
            topics=_topics(kind, self.topic_id, news if goes_on else wanted, self.random.choice((200, 1 << 16))),
            forgotten_topics_data=(),
            rack_id="",
        )
        buffer = io.BytesIO()
        entity_writer(kind)(buffer, message)
        api = load_all()[FETCH]
        api.prepare(self.version)
        return api.reader(self.version)(memoryview(buffer.getvalue()), 0)[0]

    def _wanted(self, place: Place) -> tuple[int, int, int]:
        if not self._states_epoch:
            return place.offset, -1, -1
        return place.offset, place.leader_epoch, place.last_epoch

    # -- what comes back

    def _take(self, node: SimNode, life: Life, place: Place, part: Any) -> None:
        if part.error_code == Code.offset_out_of_range:
            self._out_of_range(node, life, place)
        elif part.error_code != Code.none:
            if part.error_code not in PASSES:
                self.referee.object(f"a consumer gets {Code(int(part.error_code)).name} of node {node.id}")
        elif part.diverging_epoch.end_offset >= 0:
            self._diverging(node, life, place, part.diverging_epoch)
        else:
            for batch in iterate(bytes(part.records or b"")):
                self._read(place, batch)

    def _read(self, place: Place, batch: Batch) -> None:
        """The next batch; of the first one, records below the position may come along."""
        if not crc_matches(batch):
            self.referee.object(f"a consumer reads a damaged batch at {batch.base_offset} of {place.history}")
        if batch.last_offset < place.offset:
            self.referee.object(f"a consumer at {place.offset} is sent {batch.base_offset} of {place.history}")
        place.history.read(batch, position=place.offset, taken=place.taken)
        place.offset, place.last_epoch = batch.last_offset + 1, batch.leader_epoch
        self.fetched += 1

    def _out_of_range(self, node: SimNode, life: Life, place: Place) -> None:
        """The beginning was deleted: go on there. Otherwise it must be a replica that is behind, or of the past."""
        partition = self._partition(life, place)
        if partition is None:
            return
        start = partition.log.start_offset
        if place.offset < start:
            place.history.skipped(place.offset, start)
            place.offset, place.last_epoch = start, -1
        elif self._states_epoch and partition.is_leader and partition.leader_epoch == place.leader_epoch:
            self.referee.object(
                f"node {node.id} leads {partition} in epoch {partition.leader_epoch} and has nothing at {place.offset}"
            )

    def _diverging(self, node: SimNode, life: Life, place: Place, end: Any) -> None:
        """Nobody may part from what was committed; a follower may be behind.

        A replica that copied a compacted log knows no epoch whose batches were all cleaned before: it names an earlier
        one, which ends behind the position. Then nothing is missing, and the consumer goes on from where it is.
        """
        if place.history.cleanup is Cleanup.COMPACT and end.end_offset >= place.offset:
            place.last_epoch = -1
            return
        partition = self._partition(life, place)
        if partition is not None and partition.is_leader and partition.leader_epoch == place.leader_epoch:
            self.referee.object(
                f"node {node.id} leads {partition} and parts from a consumer at {place.offset} after epoch "
                f"{place.last_epoch}: {end}"
            )

    def _partition(self, life: Life, place: Place) -> Partition | None:
        if not life.process.alive or life.host is None:
            return None
        return life.host.find(self.topic_id.bytes, place.history.index)


def _topics(kind: Any, topic_id: uuid.UUID, wanted: dict[int, tuple[int, int, int]], size_bytes_max: int) -> Any:
    if not wanted:
        return ()
    (topic_kind,) = kind.__annotations__["topics"].__args__[:1]
    (part_kind,) = topic_kind.__annotations__["partitions"].__args__[:1]
    parts = tuple(
        part_kind(
            partition=index,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=size_bytes_max,
        )
        for index, (offset, epoch, last_epoch) in wanted.items()
    )
    return (topic_kind(topic_id=topic_id, partitions=parts),)
