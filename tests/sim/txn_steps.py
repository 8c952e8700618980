"""The steps of the end of a transaction, as they can be seen from outside, and crashes right at them.

Seen on disks: records of the state topic and markers, before and after they are written, by leaders and followers.
Seen on the network: orders to write markers, and what is answered. Nothing in the broker knows of it.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Protocol

from ottla.txn.coordinator import STATE_TOPIC
from ottla.txn.core import records as state_records
from ottla.txn.core.messages import WRITE_MARKERS
from ottla.txn.core.states import ENDING, State
from ottla.wire import batch as batches
from ottla.wire import records
from sim.disk import Crash
from sim.network import Network
from sim.node import SimNode

__all__ = ["Plan", "Step", "Steps", "Victim"]

END_TXN = 26
COMPLETE = (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


class Step(Enum):
    DECIDED = "the decision is made, not written"
    PREPARED = "the decision is in the coordinator's log"
    REPLICATED = "the decision is in a follower's log"
    ANSWERED = "the client's answer is on its way"
    ORDERED = "an order to write markers arrives"
    MARKING = "a marker is made, not written"
    MARKED = "a marker is in a leader's log"
    MARKER_REPLICATED = "a marker is in a follower's log"
    CONFIRMED = "the answer to an order is on its way"
    COMPLETING = "all is marked, the completion is not written"
    COMPLETED = "the completion is in the coordinator's log"
    COMPLETION_REPLICATED = "the completion is in a follower's log"


class Victim(Enum):
    HERE = "the node where it happens"
    COORDINATOR = "the coordinator"


@dataclass(frozen=True)
class Plan:
    """`after` so many times that the step is seen."""

    step: Step
    victim: Victim
    after: int
    power: bool


class Executioner(Protocol):
    def __call__(self, node: SimNode, *, power: bool) -> bool: ...


class Steps:
    """`plan` is carried out once; `crashes` counts what was."""

    def __init__(self, network: Network, execute: Executioner) -> None:
        self.network = network
        self.plan: Plan | None = None
        self.crashes: Counter[Step] = Counter()
        self.seen: Counter[Step] = Counter()
        self._execute = execute
        self._coordinators: dict[int, int] = {}  # producer id → node
        self._left = 0
        network.watch = self._called
        for node in network.nodes.values():
            node.watch_disk = partial(self._wrote, node)

    def arm(self, plan: Plan) -> None:
        self.plan, self._left = plan, plan.after

    # -- what is seen

    def _wrote(self, node: SimNode, path: str, data: bytes, is_done: bool) -> None:
        *_, folder, name = path.split("/")
        if not name.endswith(".log") or node.life is None or node.life.host is None:
            return
        topic, _, index = folder.rpartition("-")
        partition = node.life.host.find(topic, int(index)) if index.isdigit() else None
        if partition is None:
            return
        for step, producer_id in self._steps_in(data, topic, leads=partition.is_leader, is_done=is_done):
            if step in (Step.DECIDED, Step.PREPARED):
                self._coordinators[producer_id] = node.id
            self._see(step, node, producer_id)

    def _steps_in(self, data: bytes, topic: str, *, leads: bool, is_done: bool) -> Iterator[tuple[Step, int]]:
        for batch in batches.iterate(data):
            if batch.is_control and topic != STATE_TOPIC:
                step = (Step.MARKED if is_done else Step.MARKING) if leads else Step.MARKER_REPLICATED
                if leads or is_done:
                    yield step, batch.producer_id
            elif topic == STATE_TOPIC and (leads or is_done):
                yield from _state_steps(batch, leads=leads, is_done=is_done)

    def _called(self, method: str, source: int, target: int, is_done: bool) -> None:
        if method == WRITE_MARKERS:
            step, node = (Step.CONFIRMED if is_done else Step.ORDERED), self.network.nodes[target]
            self._see(step, node, None, coordinator=source)

    async def answering(self, node: SimNode, api_key: tuple[int, int], question: Callable[[], Awaitable[Any]]) -> Any:
        """A client's question; its answer may be lost with the coordinator, or be the last thing heard of it."""
        answer = await question()
        if api_key[0] == END_TXN:
            life = node.life
            self._see(Step.ANSWERED, node, None, coordinator=node.id)
            if node.life is not life and self.network.random.random() < 0.5:
                raise Crash
        return answer

    # -- what is done

    def _see(self, step: Step, node: SimNode, producer_id: int | None, *, coordinator: int | None = None) -> None:
        self.seen[step] += 1
        plan = self.plan
        if plan is None or plan.step is not step:
            return
        self._left -= 1
        if self._left >= 0:
            return
        if plan.victim is Victim.COORDINATOR:
            found = coordinator if coordinator is not None else self._coordinators.get(producer_id or 0)
            node = self.network.nodes[found] if found is not None else node
        if self._execute(node, power=plan.power):
            self.plan = None
            self.crashes[step] += 1


def _state_steps(batch: batches.Batch, *, leads: bool, is_done: bool) -> Iterator[tuple[Step, int]]:
    for record in records.iterate(batch):
        if record.value is None:
            continue
        transaction = state_records.read_value("", memoryview(record.value))
        if transaction.state in ENDING:
            step = (Step.PREPARED if is_done else Step.DECIDED) if leads else Step.REPLICATED
            yield step, transaction.producer_id
        elif transaction.state in COMPLETE:
            step = (Step.COMPLETED if is_done else Step.COMPLETING) if leads else Step.COMPLETION_REPLICATED
            yield step, transaction.producer_id
