"""One transactional id over all its incarnations: some crash, some go on as zombies."""

import asyncio
from random import Random
from types import SimpleNamespace

from ottla.errors import Code
from ottla.group.offsets_topic import OFFSETS_TOPIC
from sim.txn_directory import Directory
from sim.txn_flow import Flow
from sim.txn_history import TxnHistory
from sim.txn_incarnation import INPUT, Incarnation
from sim.txn_steps import Steps

__all__ = ["Copier"]

OFFSET_FETCH = (9, 9)
ZOMBIES_MAX = 2


class Copier(Directory):
    def __init__(self, name: str, partitions: int, history: TxnHistory, steps: Steps, random: Random) -> None:
        super().__init__(history, steps, random)
        self.name, self.group, self.partitions = name, f"of-{name}", partitions
        self.flow = Flow(epochs=random.random() < 0.6)
        self.timeout_ms = random.choice((2500, 4000, 8000))
        self.committed = 0  # the group's offset, by the last commit that was acknowledged
        self.incarnations: list[Incarnation] = []

    async def run(self) -> None:
        while not self.stopping:
            one = Incarnation(self, len(self.incarnations))
            self.incarnations.append(one)
            task = asyncio.ensure_future(one.run())
            await asyncio.wait([task], timeout=self.random.choice((0.5, 2.0, 8.0, 30.0)))
            if task.done():
                task.result()
                continue
            task.add_done_callback(self._ended)
            living = sum(not each.is_over for each in self.incarnations)
            if living > ZOMBIES_MAX or self.random.random() < 0.5:
                self.referee.note(f"{one} crashes")
                one.is_over = True
            else:
                self.referee.note(f"{one} is replaced and does not know it")

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if (error := task.exception()) is not None:
            self.referee.object(f"a copier ends: {error!r}")

    def began(self, newest: "Incarnation", asked_at: float) -> None:
        """All that had a session before the newest one asked for its own are shut out now."""
        newest.began_at = self.network.loop.time()
        for each in self.incarnations:
            if each is not newest and each.began_at is not None and each.began_at < asked_at:
                each.is_fenced = True

    async def position(self) -> int | None:
        """Of the group, or None when it is not to be had now."""
        topic = SimpleNamespace(name=INPUT[0], partition_indexes=[INPUT[1]])
        group = SimpleNamespace(group_id=self.group, member_id=None, member_epoch=-1, topics=[topic])
        node = self.coordinator(OFFSETS_TOPIC, self.group)
        answer = await self.call(node, OFFSET_FETCH, SimpleNamespace(groups=[group], require_stable=True))
        if answer is None or answer.groups[0].error_code != Code.none:
            return None
        (found,) = answer.groups[0].topics[0].partitions
        return max(found.committed_offset, 0) if found.error_code == Code.none else None
