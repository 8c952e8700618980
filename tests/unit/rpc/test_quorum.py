"""Raft drivers over real gRPC on loopback: elections, snapshots larger than a message, strangers at the door."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import grpc
import grpc.aio
import pytest
from ottla.pb import quorum_pb2 as pb
from ottla.pb.quorum_pb2_grpc import QuorumStub
from ottla.raft.core.messages import Entry, EntryKind, Member, Snapshot, Voter
from ottla.raft.core.raft import RaftConfig
from ottla.raft.driver import RaftDriver, SnapshotLimits
from ottla.raft.store import RaftStore
from ottla.rpc.channels import Channels
from ottla.rpc.greeting import Identity, hello_to
from ottla.rpc.quorum import SNAPSHOT_BYTES_MAX, QuorumTransport
from ottla.rpc.quorum_messages import SNAPSHOT_PART_BYTES
from ottla.rpc.server import ASKED_BYTES_MAX, RpcServer
from ottla.system import System

WORD = b"w" * (SNAPSHOT_PART_BYTES // 4)


class Words:
    def __init__(self) -> None:
        self.words: list[bytes] = []
        self.restored = 0

    def apply(self, entries: Sequence[Entry]) -> None:
        self.words += [entry.data for entry in entries if entry.kind is EntryKind.DATA]

    def restore(self, snapshot: Snapshot) -> None:
        self.words = snapshot.data.split(b" ")
        self.restored += 1

    def capture(self) -> Callable[[], bytes]:
        return lambda words=list(self.words): b" ".join(words)  # type: ignore[misc]

    def leadership(self, *, leads: bool) -> None:
        pass


class OneNode:
    """A driver, its transport and its server, for one life."""

    def __init__(self, node: int, place: "Place", *, cluster_id: str = "c", directory: int | None = None) -> None:
        system = System()
        member = Member(node, uuid.UUID(int=directory or node + 1))
        address = f"127.0.0.1:{place.ports[node]}"
        self.gone: list[int] = []
        self.server = RpcServer("127.0.0.1", place.ports[node])
        self.channels = Channels()
        identity = Identity(cluster_id=cluster_id, member=member, incarnation=system.new_uuid(), endpoint=address)
        self.transport = QuorumTransport(
            identity, channels=self.channels, seed=place.seed, on_gone=self._on_gone, threads=system.threads
        )
        self.words = Words()
        self.driver = RaftDriver(
            RaftConfig(member=member, election_timeout_s=1.0, heartbeat_s=0.1, entries_kept=1),
            store=RaftStore(system.disk, str(place.folder / f"{cluster_id}-{node}-{directory}")),
            system=system,
            machine=self.words,
            seed=place.seed,
            transport=self.transport,
            snapshot_limits=SnapshotLimits(entries_max=8),
        )

    def _on_gone(self, node: int) -> None:
        self.gone.append(node)
        self.driver.leader_gone(node)

    async def start(self) -> "OneNode":
        await self.driver.start()
        self.transport.attach(self.driver)
        self.transport.serve(self.server)
        await self.server.start()
        return self

    async def stop(self) -> None:
        await self.driver.stop()
        await self.transport.close()
        await self.server.stop()
        await self.channels.close()


class Place:
    """Where nodes 0, 1, … live; the first `voters` of them vote."""

    def __init__(self, folder: Path, *, nodes: int, voters: int) -> None:
        from support.ports import free_port

        self.folder = folder
        self.ports = [free_port() for _ in range(nodes)]
        self.seed = tuple(Voter(node, endpoint=f"127.0.0.1:{self.ports[node]}") for node in range(voters))


def run(scene: Awaitable[None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await scene

    asyncio.run(limited())


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 (what it waits for has no event)
        await asyncio.sleep(0.01)


async def leader_among(nodes: Sequence[OneNode]) -> OneNode:
    await until(lambda: any(node.driver.leads for node in nodes))
    return next(node for node in nodes if node.driver.leads)


def test_three_nodes_elect_commit_and_go_on_without_the_leader(tmp_path: Path) -> None:
    async def scene() -> None:
        place = Place(tmp_path, nodes=3, voters=3)
        nodes = [await OneNode(node, place).start() for node in range(3)]
        leader = await leader_among(nodes)
        await leader.driver.propose([b"one"])
        others = [node for node in nodes if node is not leader]
        await until(lambda: all(node.words.words == [b"one"] for node in others))
        await leader.stop()
        successor = await leader_among(others)
        await successor.driver.propose([b"two"])
        await until(lambda: all(node.words.words == [b"one", b"two"] for node in others))
        assert all(leader.driver.raft.member.id in node.gone for node in others)
        for node in others:
            await node.stop()

    run(scene())


def test_an_observer_that_comes_late_gets_a_snapshot_of_many_messages(tmp_path: Path) -> None:
    async def scene() -> None:
        place = Place(tmp_path, nodes=2, voters=1)
        voter = await OneNode(0, place).start()
        await leader_among([voter])
        for _ in range(20):
            await voter.driver.propose([WORD])
        await until(lambda: voter.driver.raft.log.snapshot.index > 8)
        assert len(voter.driver.raft.log.snapshot.data) > 2 * SNAPSHOT_PART_BYTES
        observer = await OneNode(1, place).start()
        await until(lambda: len(observer.words.words) == 20)
        assert observer.words.restored == 1
        assert [state.id for state in voter.driver.describe().observers] == [1]
        await observer.stop()
        await voter.stop()

    run(scene())


def hello_of(node: int) -> pb.Hello:
    own = Identity(
        cluster_id="c", member=Member(node, uuid.UUID(int=99)), incarnation=uuid.UUID(int=98), endpoint="127.0.0.1:1"
    )
    return hello_to(0, own)


@pytest.mark.parametrize(
    ("node", "claimed_bytes", "frames", "code"),
    [
        (77, 1 << 20, 2, grpc.StatusCode.PERMISSION_DENIED),
        (1, SNAPSHOT_BYTES_MAX + 1, 2, grpc.StatusCode.INVALID_ARGUMENT),
        (1, 2 * SNAPSHOT_PART_BYTES, 5, grpc.StatusCode.INVALID_ARGUMENT),
    ],
    ids=["stranger", "beyond-the-limit", "more-than-claimed"],
)
def test_snapshots_that_are_not_taken(
    tmp_path: Path, node: int, claimed_bytes: int, frames: int, code: grpc.StatusCode
) -> None:
    """The second voter is not there; somebody else says to be it, or to be nobody known. The last of the frames is the
    one that is refused: a write after that would hide the code, since gRPC's client tells of its own failure then."""

    async def scene() -> None:
        place = Place(tmp_path, nodes=2, voters=2)
        voter = await OneNode(0, place).start()
        stub = QuorumStub(voter.channels.to(f"127.0.0.1:{place.ports[0]}"))
        call = stub.SendSnapshot(timeout=30)
        part = pb.SnapshotFrame(data=bytes(SNAPSHOT_PART_BYTES))
        head = pb.SnapshotFrame(head=pb.SnapshotHead(size=claimed_bytes))
        for frame in [pb.SnapshotFrame(hello=hello_of(node)), head, part, part, part][:frames]:
            await call.write(frame)
        assert await call.code() is code
        with pytest.raises((grpc.aio.AioRpcError, asyncio.InvalidStateError)):
            await call.write(part)
        await voter.stop()

    run(scene())


def test_a_first_message_larger_than_any_that_nodes_send_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        place = Place(tmp_path, nodes=1, voters=1)
        voter = await OneNode(0, place).start()
        without_limit = [("grpc.max_send_message_length", -1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{place.ports[0]}", options=without_limit) as channel:
            call = QuorumStub(channel).Exchange(None)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call.write(pb.QuorumFrame(hello=pb.Hello(cluster_id="c" * (ASKED_BYTES_MAX + 1))))
                await call.read()
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await voter.stop()

    run(scene())


@pytest.mark.parametrize(
    ("stranger", "words"),
    [
        ({"cluster_id": "other"}, "belongs to cluster other, node 0 to cluster c"),
        ({"directory": 77, "node": 1}, "node id 1 is taken by a node that is connected"),
    ],
    ids=["cluster", "duplicate"],
)
def test_strangers_are_refused_with_a_line_on_both_sides(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stranger: dict[str, object], words: str
) -> None:
    async def scene() -> None:
        place = Place(tmp_path, nodes=3, voters=2)
        nodes = [await OneNode(node, place).start() for node in range(2)]
        leader = await leader_among(nodes)
        await leader.driver.propose([b"one"])
        await until(lambda: all(node.words.words for node in nodes))
        intruder = await _intruder(place, **stranger)  # type: ignore[arg-type]
        await until(lambda: sum(words in record.getMessage() for record in caplog.records) >= 2)
        assert intruder.words.words == []
        for node in (intruder, *nodes):
            await node.stop()

    caplog.set_level(logging.INFO, "ottla.quorum")
    run(scene())
    lines = [record.getMessage() for record in caplog.records if words in record.getMessage()]
    assert any(line.startswith("refused: ") for line in lines)
    assert any("refused by node 0: " in line for line in lines)


async def _intruder(place: Place, *, node: int = 2, cluster_id: str = "c", directory: int | None = None) -> OneNode:
    """Listens on the third port, whatever id it claims."""
    elsewhere = Place(place.folder, nodes=0, voters=0)
    elsewhere.ports = [*place.ports[:node], place.ports[2]]
    elsewhere.seed = place.seed[:1]
    return await OneNode(node, elsewhere, cluster_id=cluster_id, directory=directory).start()


def test_a_stranger_moves_neither_the_log_nor_the_term(tmp_path: Path) -> None:
    async def scene() -> None:
        place = Place(tmp_path, nodes=3, voters=3)
        nodes = [await OneNode(node, place).start() for node in range(3)]
        leader = await leader_among(nodes)
        await leader.driver.propose([b"one"])
        await until(lambda: all(node.words.words == [b"one"] for node in nodes))
        term, last = leader.driver.term, leader.driver.raft.log.last_index
        entry = pb.Entry(index=last + 1, term=term + 5, kind=EntryKind.DATA, data=b"\xff" * 20)
        append = pb.Append(previous_index=last, previous_term=term, entries=[entry], commit=last + 1)
        hello = hello_of(77)
        for node in nodes:
            hello.target = node.driver.raft.member.id
            call = QuorumStub(node.channels.to(f"127.0.0.1:{place.ports[hello.target]}")).Exchange(None)
            await call.write(pb.QuorumFrame(hello=hello))
            await call.read()
            for message in (
                pb.QuorumMessage(term=term + 5, append=append),
                pb.QuorumMessage(term=(1 << 63) - 1, append_reply=pb.AppendReply()),
                pb.QuorumMessage(term=term, leader_hint=pb.LeaderHint(leader=0, endpoint="127.0.0.1:1")),
            ):
                await call.write(pb.QuorumFrame(message=message))
            await call.done_writing()
            await call.read()
        await leader.driver.propose([b"two"])
        await until(lambda: all(node.words.words == [b"one", b"two"] for node in nodes))
        assert [node.driver.term for node in nodes] == [term] * 3
        assert all(node.transport.address_of(0) == f"127.0.0.1:{place.ports[0]}" for node in nodes)
        await asyncio.gather(*(node.stop() for node in nodes))

    run(scene())
