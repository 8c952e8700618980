"""What must hold in every history. The referee sees everything and touches nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.raft.core.elections import Role
from ottla.raft.core.messages import Entry
from ottla.replica.partition import Partition
from ottla.wire import records
from ottla.wire.batch import Batch, iterate
from sim.history import Cleanup, History
from sim.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from sim.node import SimNode

__all__ = ["Broken", "Referee", "batches_below"]

Key = tuple[int, int]  # topic id as a number, partition
Content = tuple[bytes | None, bytes | None]  # key, value


class Broken(Exception):
    """A rule does not hold."""


class Referee:
    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.trace: list[str] = []
        self.problems: list[str] = []
        self.leaders: dict[int, int] = {}  # term → node
        self.entries: dict[int, tuple[int, bytes]] = {}  # committed metadata
        self.batches: dict[Key, dict[int, bytes]] = {}  # committed records: base offset → batch
        self.records: dict[Key, dict[int, Content]] = {}  # the same where batches are rewritten: offset → record
        self._watermarks: dict[tuple[Key, int], int] = {}  # by leader epoch
        self._partition_leaders: dict[tuple[Key, int], str] = {}
        self._verified: dict[tuple[str, Key], int] = {}

    def note(self, text: str) -> None:
        self.trace.append(f"{self._loop.time():9.4f} {text}")

    def object(self, problem: str) -> None:
        self.note(f"BROKEN: {problem}")
        self.problems.append(problem)

    def raise_problems(self) -> None:
        if self.problems:
            raise Broken("; ".join(self.problems[:3]))

    # reported by nodes

    def refused(self, node_id: int, reason: BaseException | None, *, expected: bool) -> None:
        if expected:
            self.note(f"node {node_id} stops: {reason}")
        elif "register" in str(reason):
            self.note(f"node {node_id} gives up: {reason}")
        else:
            self.object(f"node {node_id} refuses to go on: {reason}")

    def leads(self, node_id: int, term: int) -> None:
        if self.leaders.setdefault(term, node_id) != node_id:
            self.object(f"nodes {self.leaders[term]} and {node_id} both lead term {term}")

    def entries_applied(self, node_id: int, entries: Sequence[Entry]) -> None:
        for entry in entries:
            known = self.entries.setdefault(entry.index, (entry.term, entry.data))
            if known != (entry.term, entry.data):
                self.object(f"node {node_id} applies another metadata entry {entry.index} than was committed")

    # observed

    def observe(self, nodes: Sequence["SimNode"]) -> None:
        for node in nodes:
            life = node.life
            if life is None or not life.hears:
                continue
            raft = life.quorum.driver.raft
            if raft.role is Role.LEADER:
                self.leads(node.id, raft.term)
            for partition in life.host or ():
                self._observe_partition(life.process.name, partition)
        self.raise_problems()

    def _observe_partition(self, process: str, partition: Partition) -> None:
        key, high_watermark = _key(partition), partition.high_watermark
        if partition.is_leader:
            term = (key, partition.leader_epoch)
            if self._partition_leaders.setdefault(term, process) != process:
                self.object(f"{self._partition_leaders[term]} and {process} both lead {partition} in epoch {term[1]}")
            if high_watermark < self._watermarks.get(term, 0):
                self.object(f"the high watermark of {partition} falls on {process} in epoch {term[1]}")
            self._watermarks[term] = high_watermark
        begin = min(self._verified.get((process, key), 0), high_watermark)
        if begin < high_watermark:
            self.committed(process, partition, begin)
            self._verified[process, key] = high_watermark

    def committed(self, where: str, partition: Partition, begin: int = 0) -> None:
        """All that lies below a replica's high watermark is the same everywhere, for ever."""
        rewritten = "compact" in partition.log.settings.cleanup_policies
        for _, data in batches_below(partition, begin):
            for batch in iterate(data):
                self.batch_read(f"{where} ({partition})", _key(partition), batch, rewritten=rewritten)

    def batch_read(self, where: str, key: Key, batch: Batch, *, rewritten: bool) -> None:
        """Somebody has this batch of what is committed. Compaction rewrites batches, but no record."""
        if not rewritten:
            known = self.batches.setdefault(key, {})
            if known.setdefault(batch.base_offset, data := bytes(batch.data)) != data:
                self.object(f"{where} has another batch at {batch.base_offset} than was committed")
            return
        contents = self.records.setdefault(key, {})
        for record in records.iterate(batch):
            content = (record.key, record.value)
            if contents.setdefault(record.offset, content) != content:
                self.object(f"{where} has another record at {record.offset} than was committed")

    # at the end

    def check_acknowledged(
        self, history: History, where: str, partition: Partition, acknowledged: dict[int, list[tuple[int, int]]]
    ) -> None:
        """`acknowledged`: producer → (number of the record, offset it was answered)."""
        found: dict[int, list[tuple[int, int]]] = {}
        for _, data in batches_below(partition, 0):
            for record in (one for batch in iterate(data) for one in records.iterate(batch)):
                if record.offset >= partition.log.start_offset:
                    producer, number = map(int, (record.value or b"").split(b":"))
                    found.setdefault(producer, []).append((number, record.offset))
        for producer, rows in found.items():
            if not _in_order([number for number, _ in rows], history.cleanup):
                self.object(f"records of producer {producer} in {partition} are not in order, once each: {rows[-8:]}")
        offsets = {offset for rows in found.values() for _, offset in rows}
        for producer, answered in acknowledged.items():
            confirmed = {offset for _, offset in answered}
            history.check_replica(f"{where}, producer {producer}", partition, offsets, confirmed)
            numbers = dict(answered)
            wrong = [row for row in found.get(producer, ()) if numbers.get(row[0], row[1]) != row[1]]
            if wrong:
                self.object(f"producer {producer} was answered other offsets than {wrong[:3]}")

    def check_equal(self, partitions: Sequence[Partition]) -> None:
        """Where each replica cleans by itself, what they have was compared record by record (`committed`)."""
        if "compact" in partitions[0].log.settings.cleanup_policies:
            return
        start = max(partition.log.start_offset for partition in partitions)
        whole = [batches_below(partition, start) for partition in partitions]
        if any(each != whole[0] for each in whole[1:]):
            self.object(f"the replicas of {partitions[0]} are not equal up to the high watermark")


def _in_order(numbers: list[int], cleanup: Cleanup) -> bool:
    """Once each, from the first one on; where the beginning or older ones were cleaned, from any, or some of them."""
    if cleanup is Cleanup.COMPACT:
        return numbers == sorted(set(numbers))
    first = 0 if cleanup is Cleanup.KEEP else numbers[0]
    return numbers == list(range(first, first + len(numbers)))


def _key(partition: Partition) -> Key:
    return partition.topic_id.int, partition.index


def batches_below(partition: Partition, begin: int) -> list[tuple[int, bytes]]:
    """(base offset, batch) of what is committed on this replica, from the batch that holds `begin`."""
    log, end = partition.log, partition.high_watermark
    begin, found = max(begin, log.start_offset), []
    while begin < end:
        data = log.read_cold(start=begin, end=end, size_bytes_max=1 << 20, whole_first=True)
        if not data:
            break
        for batch in iterate(data):
            found.append((batch.base_offset, bytes(batch.data)))
            begin = batch.last_offset + 1
    return found
