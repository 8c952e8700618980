"""Consumers that assign themselves, one group and one connection each, commit at a fixed rate whatever the broker does.

Arguments: host:port, topic, groups, commits per second of each group, warm-up seconds, seconds. Prints JSON. The frames
are OffsetCommit v9 as such a consumer sends them, made once and patched, so that one process can be a thousand clients.
Latency counts from the moment a commit was due. Fails when a commit is refused, or is not there at the end.
"""

import json
import selectors
import struct
import sys
import time
from collections import deque
from pathlib import Path

from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v8.request import OffsetFetchRequest, OffsetFetchRequestGroup
from kio.schema.offset_fetch.v8.response import OffsetFetchResponse

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.frames import Connection, encode_request, framed

CORRELATION_AT = 8  # behind length, key and version
BODY_AT = 8  # of an answer: behind length and correlation id
READY_S = 60.0
RETRY_S = 0.1
LAST_ANSWERS_S = 30.0
MARK = 0x0123_4567_89AB_CDEF
PERCENTILES = {"p50": 0.5, "p99": 0.99}


class Consumer:
    """One group with its connection. `accepted` is the answer that says that all is well."""

    def __init__(self, address: tuple[str, int], group: str, topic: str) -> None:
        self.group = group
        self.offset = 0
        self.refused: list[bytes] = []
        self._connection = Connection(address[1], host=address[0], client_id=group)
        self._socket = self._connection.socket
        frame = framed(encode_request(commit_of(group, topic, MARK), client_id=group))
        self._frame, self._offset_at = bytearray(frame), frame.index(struct.pack(">q", MARK))
        self._due: deque[float] = deque()
        self._read = b""
        self._accepted = b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def begin(self) -> None:
        """The first commits, until the coordinator takes them; then nothing blocks any more."""
        deadline = time.monotonic() + READY_S
        while True:
            self.send(0.0)
            answer = self._connection.read_frame()
            if is_fine(answer):
                break
            assert time.monotonic() < deadline, f"{self.group} cannot commit: {answer.hex()}"
            time.sleep(RETRY_S)
        self._accepted = answer[4:]
        self._due.clear()
        self._socket.setblocking(False)

    def send(self, due: float) -> None:
        self.offset += 1
        struct.pack_into(">i", self._frame, CORRELATION_AT, self.offset & 0x7FFF_FFFF)
        struct.pack_into(">q", self._frame, self._offset_at, self.offset)
        self._due.append(due)
        # A hundred bytes ten times a second: a connection that cannot take them has failed.
        assert self._socket.send(self._frame) == len(self._frame), f"{self.group}: the broker does not read"

    def receive(self, now: float) -> list[float]:
        """When each of the commits was due that are answered now."""
        data = self._read + self._socket.recv(65536)
        answered = []
        size = BODY_AT + len(self._accepted)
        while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
            if end != size or data[BODY_AT:end] != self._accepted:
                self.refused.append(data[:end])
            answered.append(self._due.popleft())
            data = data[end:]
        self._read = data
        return answered

    @property
    def waits(self) -> int:
        return len(self._due)

    def kept(self) -> int:
        """The offset that the coordinator returns, by a request over the same connection."""
        self._socket.settimeout(READY_S)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=self.group, topics=None),))
        (group,) = self._connection.ask(request, OffsetFetchResponse).groups
        return group.topics[0].partitions[0].committed_offset


def commit_of(group: str, topic: str, offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    return OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)


def is_fine(answer: bytes) -> bool:
    """The error code of the only partition comes before three empty tag sections."""
    return answer[-5:] == bytes(5)


def coordinator_of(bootstrap: str, group: str) -> tuple[str, int]:
    host, _, port = bootstrap.rpartition(":")
    deadline = time.monotonic() + READY_S
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))
    with Connection(int(port), host=host) as connection:
        while True:
            (found,) = connection.ask(request, FindCoordinatorResponse).coordinators
            if found.error_code == 0:
                return found.host, found.port
            assert time.monotonic() < deadline, f"no coordinator: {found.error_code!r}"
            time.sleep(RETRY_S)


class Load:
    """The i-th commit of all is due at i / rate and belongs to group i modulo groups."""

    def __init__(self, consumers: list[Consumer], rate: int, *, warm_up_s: float, seconds: float) -> None:
        self._consumers, self._rate = consumers, rate
        self._warm_up_s, self._seconds = warm_up_s, seconds
        self._selector = selectors.EpollSelector()
        for consumer in consumers:
            self._selector.register(consumer, selectors.EVENT_READ)
        self.latencies: list[float] = []
        self.answered = 0

    def run(self) -> None:
        begin, sent = time.perf_counter(), 0
        until = self._warm_up_s + self._seconds
        last_answers = begin + until + LAST_ANSWERS_S
        while sent < until * self._rate or any(consumer.waits for consumer in self._consumers):
            passed = min(time.perf_counter() - begin, until)
            while sent < passed * self._rate:
                self._consumers[sent % len(self._consumers)].send(begin + sent / self._rate)
                sent += 1
            for key, _ in self._selector.select(0.001):
                self._take(key.fileobj, begin)  # type: ignore[arg-type]
            assert time.perf_counter() < last_answers, "commits are not answered"

    def _take(self, consumer: Consumer, begin: float) -> None:
        now = time.perf_counter()
        in_time = self._warm_up_s <= now - begin < self._warm_up_s + self._seconds
        for due in consumer.receive(now):
            self.answered += in_time
            if due - begin >= self._warm_up_s:
                self.latencies.append(now - due)


def main(bootstrap: str, topic: str, groups: int, each: int, warm_up_s: int, seconds: int) -> None:
    names = [f"group-{number:05}" for number in range(groups)]
    address = coordinator_of(bootstrap, names[0])
    consumers = [Consumer(address, name, topic) for name in names]
    for consumer in consumers:
        consumer.begin()
    load = Load(consumers, groups * each, warm_up_s=warm_up_s, seconds=seconds)
    load.run()
    refused = [answer for consumer in consumers for answer in consumer.refused]
    assert not refused, f"{len(refused)} commits were not accepted, as {refused[0].hex()}"
    lost = [consumer.group for consumer in consumers if consumer.kept() != consumer.offset]
    assert not lost, f"the last commits of {len(lost)} groups are not there: {lost[:3]}"
    load.latencies.sort()
    figures = {name: 1000 * load.latencies[int(len(load.latencies) * share)] for name, share in PERCENTILES.items()}
    total = groups * each * (warm_up_s + seconds) + groups
    print(json.dumps({"per_second": load.answered / seconds, "commits": total, **figures}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7]))
