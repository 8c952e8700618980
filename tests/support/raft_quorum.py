"""Raft drivers on one loop with real disks, and a network between them that delays and reorders."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from ottla.raft.core.messages import Entry, EntryKind, Member, Message, Snapshot, Voter
from ottla.raft.core.raft import NotLeader, RaftConfig
from ottla.raft.driver import RaftDriver, SnapshotLimits
from ottla.raft.store import RaftStore
from ottla.system import System


class Words:
    """A state machine that remembers every entry."""

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self.leads = False

    def apply(self, entries: Sequence[Entry]) -> None:
        self.words += [entry.data for entry in entries if entry.kind is EntryKind.DATA]

    def restore(self, snapshot: Snapshot) -> None:
        self.words = snapshot.data.split(b" ") if snapshot.data else []

    def capture(self) -> Callable[[], bytes]:
        return lambda words=list(self.words): b" ".join(words)  # type: ignore[misc]

    def leadership(self, *, leads: bool) -> None:
        self.leads = leads


class Network:
    """Delivers on the same loop, after random delays."""

    def __init__(self) -> None:
        self.drivers: dict[int, RaftDriver] = {}
        self.random = Random(3)

    def send(self, message: Message) -> None:
        delay = self.random.random() * 0.002
        asyncio.get_running_loop().call_later(delay, self._deliver, message)

    def _deliver(self, message: Message) -> None:
        if (driver := self.drivers.get(message.target)) is not None:
            driver.receive(message)


def directory(node: int) -> uuid.UUID:
    return uuid.UUID(int=node + 1)


class Quorum:
    def __init__(self, folder: Path, voters: Sequence[int], *, system: System | None = None) -> None:
        self.folder = folder
        self.seed = tuple(Voter(node, directory(node)) for node in voters)
        self.network = Network()
        self.machines: dict[int, Words] = {}
        self.system = system or System()

    async def start(self, node: int) -> None:
        self.machines[node] = Words()
        driver = RaftDriver(
            RaftConfig(member=Member(node, directory(node)), election_timeout_s=0.4, heartbeat_s=0.08, entries_kept=5),
            store=RaftStore(self.system.disk, str(self.folder / str(node))),
            system=self.system,
            machine=self.machines[node],
            seed=self.seed,
            transport=self.network,
            snapshot_limits=SnapshotLimits(entries_max=20),
        )
        await driver.start()
        self.network.drivers[node] = driver

    async def stop(self, node: int) -> None:
        await self.network.drivers.pop(node).stop()

    async def leader(self) -> RaftDriver:
        while True:
            for driver in self.network.drivers.values():
                if driver.leads:
                    return driver
            await asyncio.sleep(0.005)

    async def propose(self, word: bytes) -> None:
        """Like a client: again, until a leader has committed it."""
        while True:
            try:
                await (await self.leader()).propose([word])
                return
            except NotLeader:
                await asyncio.sleep(0.01)

    async def agreement(self, words: Sequence[bytes]) -> None:
        """An entry may be there twice: a leader that steps down does not know whether its proposal is committed."""
        await until(
            lambda: all(list(dict.fromkeys(self.machines[node].words)) == list(words) for node in self.network.drivers)
        )


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.005)
