"""Chooses the records of each partition for the answer of a Fetch, within its limits.

Records are only located here; the connection reads them when the client takes them.
"""

from dataclasses import dataclass, field
from typing import TypedDict

from ottla.api.authorizing import TopicAccess, topic_access
from ottla.api.call import Call
from ottla.api.fetch_sessions import Wanted
from ottla.api.pacing import Pace, sliced
from ottla.api.requests import FetchRequest
from ottla.config import BrokerConfig
from ottla.errors import Code, KafkaError
from ottla.replica.host import ReplicaHost
from ottla.replica.nearest import LEADER, RACK_AWARE, nearest
from ottla.replica.partition import ROLE_CHANGED_BYTES, Partition
from ottla.security.core.access import Operation
from ottla.storage.log.log import Located
from ottla.wire.fetch_response import Fetched

__all__ = ["FetchPlans", "Plan", "Reading"]

READ_COMMITTED = 1
FOLLOWERS_SINCE = 11
PARTITIONS_READ_AT_ONCE_MAX = 50  # per read of a waiting fetch: many fetches may wait for the same append


class Span(TypedDict):
    """The arguments of Partition.locate."""

    start: int
    end: int
    size_bytes_max: int
    whole_first: bool


@dataclass(slots=True)
class Reading:
    answers: list[tuple[Wanted, Fetched]] = field(default_factory=list)
    size_bytes: int = 0
    is_final: bool = False
    """An error, a divergence or a nearer replica: answer the client at once."""
    cold: bool = False
    """Some of it is not in the page cache: use `read_cold`."""


class Plan:
    """One fetch request, readable again and again while it waits.

    `from_leader_only`: the client is too old to read from followers. `rack`: the client's rack.
    `readable`: None where all topics are.
    """

    def __init__(
        self,
        *,
        wanted: list[Wanted],
        size_bytes_max: int,
        read_committed: bool,
        replicas: ReplicaHost,
        pace: Pace,
        from_leader_only: bool = False,
        rack: str = "",
        readable: TopicAccess | None = None,
    ) -> None:
        self.wanted = wanted
        self.is_wide = len(wanted) > PARTITIONS_READ_AT_ONCE_MAX
        self.last_size_bytes = 0
        self.undecided: dict[Partition, int] = {}
        """Where records wait for the end of their transaction, the last stable offset that the last reading met."""
        self._size_bytes_max = size_bytes_max
        self._read_committed = read_committed
        self._replicas = replicas
        self.pace = pace
        self._from_leader_only = from_leader_only
        self._rack = rack
        self._readable = readable

    @property
    def partitions(self) -> list[Partition]:
        return [partition for wanted in self.wanted if (partition := self.find(wanted)) is not None]

    def find(self, wanted: Wanted) -> Partition | None:
        return self._replicas.find(wanted.topic, wanted.index)

    def readable_bytes(self, partition: Partition, appended_bytes: int) -> int:
        """How many bytes an append may have made readable. The marker of a transaction is a small batch that makes many
        bytes readable; batches after an open transaction are not readable."""
        stable = self.undecided.get(partition)
        if stable is None or appended_bytes >= ROLE_CHANGED_BYTES:
            return appended_bytes
        return 0 if partition.last_stable_offset == stable else ROLE_CHANGED_BYTES

    def read(self) -> Reading:
        self.undecided.clear()
        reading = Reading()
        for wanted in self.wanted:
            fetched = self._read_one(wanted, reading)
            if reading.cold:
                return reading
            reading.answers.append((wanted, fetched))
        self.last_size_bytes = reading.size_bytes
        return reading

    async def read_cold(self) -> Reading:
        """The same; cold partitions are located in a thread."""
        return await self.read_in_slices()

    async def read_in_slices(self) -> Reading:
        """The same in slices, for many partitions."""
        self.undecided.clear()
        reading = Reading()
        async for wanted in sliced(self.wanted, self.pace):
            fetched = self._read_one(wanted, reading)
            if reading.cold:
                reading.cold = False
                fetched = await self._read_one_cold(wanted, reading)
            reading.answers.append((wanted, fetched))
        self.last_size_bytes = reading.size_bytes
        return reading

    def _read_one(self, wanted: Wanted, reading: Reading) -> Fetched:
        try:
            partition = self._require(wanted)
            fetched = self._prepare(partition, wanted)
            span = self._span(partition, wanted, reading)
            if span is not None and fetched.diverging is None and fetched.preferred_read_replica == LEADER:
                found = partition.locate(**span)
                if found is None:
                    reading.cold = True
                else:
                    self._fill(fetched, found, reading)
        except KafkaError as error:
            fetched = self._failure(wanted, error)
        reading.is_final |= bool(fetched.error_code or fetched.diverging or fetched.preferred_read_replica != LEADER)
        return fetched

    async def _read_one_cold(self, wanted: Wanted, reading: Reading) -> Fetched:
        try:
            partition = self._require(wanted)
            fetched = self._prepare(partition, wanted)
            span = self._span(partition, wanted, reading)
            if span is not None:
                self._fill(fetched, await partition.locate_cold(**span), reading)
        except KafkaError as error:
            fetched = self._failure(wanted, error)
        return fetched

    def _require(self, wanted: Wanted) -> Partition:
        if self._readable is not None:
            self._readable.require(wanted.topic)
        return self._replicas.require(wanted.topic, wanted.index)

    def _fill(self, fetched: Fetched, found: Located, reading: Reading) -> None:
        if found.region is not None:
            fetched.records = found.region
            reading.size_bytes += len(found.region)
        if self._read_committed:
            fetched.aborted = found.aborted

    def _prepare(self, partition: Partition, wanted: Wanted) -> Fetched:
        """The answer without records: offsets, and the checks of epochs and range."""
        if self._from_leader_only:
            partition.require_leader(wanted.leader_epoch)
        else:
            partition.require_epoch(wanted.leader_epoch)
        log = partition.log
        if not log.start_offset <= wanted.offset <= partition.high_watermark:
            self._refuse_offset(partition, wanted)
        stable = partition.last_stable_offset
        if self._read_committed and stable < partition.high_watermark:
            self.undecided[partition] = stable
        return Fetched(
            wanted.index,
            high_watermark=partition.high_watermark,
            last_stable_offset=stable,
            log_start_offset=log.start_offset,
            aborted=() if self._read_committed else None,
            diverging=self._diverging(partition, wanted),
            preferred_read_replica=self._preferred(partition, wanted.offset) if self._rack else LEADER,
        )

    def _preferred(self, partition: Partition, offset: int) -> int:
        return nearest(partition, offset=offset, rack=self._rack, image=self._replicas.image)

    def _refuse_offset(self, partition: Partition, wanted: Wanted) -> None:
        if wanted.offset > partition.log.end_offset or wanted.offset < partition.log.start_offset:
            raise KafkaError(
                Code.offset_out_of_range,
                f"{partition} has {partition.log.start_offset} to {partition.high_watermark}, not {wanted.offset}",
            )

    def _diverging(self, partition: Partition, wanted: Wanted) -> tuple[int, int] | None:
        if wanted.last_fetched_epoch < 0:
            return None
        epoch, end = partition.log.epochs.end_offset_for(wanted.last_fetched_epoch, partition.log.end_offset)
        return (epoch, end) if epoch < wanted.last_fetched_epoch or end < wanted.offset else None

    def _span(self, partition: Partition, wanted: Wanted, reading: Reading) -> Span | None:
        """What to read; None if there is nothing new or the limit is reached."""
        end = partition.last_stable_offset if self._read_committed else partition.high_watermark
        bytes_left = min(wanted.size_bytes_max, self._size_bytes_max - reading.size_bytes)
        first = reading.size_bytes == 0
        if wanted.offset >= end or (bytes_left <= 0 and not first):
            return None
        return {"start": wanted.offset, "end": end, "size_bytes_max": max(bytes_left, 0), "whole_first": first}

    def _failure(self, wanted: Wanted, error: KafkaError) -> Fetched:
        leader = None
        if error.code in (Code.not_leader_or_follower, Code.fenced_leader_epoch):
            leader = self._replicas.leader_of(wanted.topic, wanted.index)
        return Fetched(wanted.index, error.code, leader=leader)


class FetchPlans:
    """Creates the fetch plans of a node."""

    def __init__(self, replicas: ReplicaHost, config: BrokerConfig) -> None:
        self._replicas = replicas
        self._size_bytes_max: int = config["fetch.max.bytes"]
        selector: str | None = config["replica.selector.class"]
        self._cares_for_racks = selector is not None and selector.rpartition(".")[2] == RACK_AWARE

    def plan(self, wanted: list[Wanted], request: FetchRequest, call: Call) -> Plan:
        knows_followers = call.version >= FOLLOWERS_SINCE
        return Plan(
            wanted=wanted,
            size_bytes_max=self._size_bytes_max_of(request, call),
            read_committed=request.isolation_level == READ_COMMITTED,
            replicas=self._replicas,
            pace=call.long_work.pace,
            from_leader_only=not knows_followers,
            rack=request.rack_id or "" if knows_followers and self._cares_for_racks else "",
            readable=topic_access(call, Operation.READ, self._replicas.image),
        )

    def _size_bytes_max_of(self, request: FetchRequest, call: Call) -> int:
        """Limits the bytes to what the client's quota allows at once; otherwise the fetch could never be answered."""
        size = min(request.max_bytes, self._size_bytes_max)
        meter = call.allowance.fetch if call.allowance is not None else None
        return size if meter is None else min(size, max(meter.window_bytes, 1))
