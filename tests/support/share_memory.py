"""A persister that keeps the states of share-partitions in memory, with the fences of the real one."""

from collections.abc import Sequence

from ottla.errors import Code, KafkaError
from ottla.share.core.messages import UNINITIALIZED, ShareKey, ShareState, StateBatch, Summary


class MemoryPersister:
    """`written` is everything in order; `refusal`, when set, is raised by the next write."""

    def __init__(self) -> None:
        self.states: dict[ShareKey, tuple[int, int, int, dict[int, tuple[int, int]]]] = {}
        self.written: list[tuple[ShareKey, int, tuple[StateBatch, ...]]] = []
        self.refusal: KafkaError | None = None

    async def initialize(self, key: ShareKey, *, state_epoch: int, start: int) -> None:
        known = self.states.get(key)
        if known is not None and state_epoch < known[0]:
            raise KafkaError(Code.fenced_state_epoch)
        self.states[key] = (state_epoch, known[1] if known else 0, start, {})

    async def read(self, key: ShareKey, *, leader_epoch: int) -> ShareState:
        state_epoch, known_epoch, start, records = self.states.get(key, (0, 0, UNINITIALIZED, {}))
        if leader_epoch < known_epoch:
            raise KafkaError(Code.fenced_leader_epoch)
        self.states[key] = (state_epoch, leader_epoch, start, records)
        batches = tuple(StateBatch(at, at, *records[at]) for at in sorted(records) if at >= start)
        return ShareState(state_epoch, start, batches)

    async def write(
        self, key: ShareKey, *, state_epoch: int, leader_epoch: int, start: int, batches: Sequence[StateBatch]
    ) -> None:
        if self.refusal is not None:
            refusal, self.refusal = self.refusal, None
            raise refusal
        known_state, known_leader, known_start, records = self.states.get(key, (0, 0, UNINITIALIZED, {}))
        if state_epoch < known_state:
            raise KafkaError(Code.fenced_state_epoch)
        if leader_epoch < known_leader:
            raise KafkaError(Code.fenced_leader_epoch)
        for batch in batches:
            records |= dict.fromkeys(range(batch.first, batch.last + 1), (batch.delivery, batch.count))
        begin = known_start if start == UNINITIALIZED else start
        self.states[key] = (state_epoch, leader_epoch, begin, {at: one for at, one in records.items() if at >= begin})
        self.written.append((key, start, tuple(batches)))

    async def delete(self, key: ShareKey) -> None:
        self.states.pop(key, None)

    async def summary(self, key: ShareKey) -> Summary:
        state_epoch, leader_epoch, start, _ = self.states.get(key, (0, 0, UNINITIALIZED, {}))
        return Summary(state_epoch, start, leader_epoch)
