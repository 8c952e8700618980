"""What is kept of a share-partition, and what brokers ask each other about it. Pure."""

import uuid
from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

import msgspec

from ottla.ids import uuid_text

__all__ = ["UNINITIALIZED", "Delivery", "Persister", "ShareKey", "ShareState", "StateBatch", "Summary"]

UNINITIALIZED = -1
"""The start offset of a state that has none yet: the leader takes it from share.auto.offset.reset."""


class Delivery(IntEnum):
    """Kafka's numbers of a record's state. ACQUIRED never leaves the leader's memory."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class ShareKey(msgspec.Struct, frozen=True, array_like=True):
    group_id: str
    topic_id: uuid.UUID
    partition: int

    def __str__(self) -> str:
        """Also what says which partition of the state topic keeps it, as Kafka's."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


class StateBatch(msgspec.Struct, frozen=True, array_like=True):
    """Records from `first` to `last`, both included, that fare alike."""

    first: int
    last: int
    delivery: int
    count: int


class ShareState(msgspec.Struct, frozen=True, array_like=True):
    """Records before `start` are done with; those in no batch are available and were never delivered."""

    state_epoch: int = 0
    start: int = UNINITIALIZED
    batches: tuple[StateBatch, ...] = ()


class Summary(msgspec.Struct, frozen=True, array_like=True):
    state_epoch: int = 0
    start: int = UNINITIALIZED
    leader_epoch: int = 0


class Persister(Protocol):
    """Keeps states durably, wherever they are coordinated. KafkaError when it cannot (after some tries of its own):

    COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR may be tried again later;
    FENCED_STATE_EPOCH and FENCED_LEADER_EPOCH say that whoever asks has been replaced; GROUP_ID_NOT_FOUND (in `write`),
    UNKNOWN_TOPIC_OR_PARTITION: there is no such state.
    """

    async def initialize(self, key: ShareKey, *, state_epoch: int, start: int) -> None:
        """Begin it, or begin it again with a higher state epoch (AlterShareGroupOffsets)."""

    async def read(self, key: ShareKey, *, leader_epoch: int) -> ShareState:
        """For a partition's new leader; older leaders are fenced from here on. Not initialized: epoch 0, no start."""

    async def write(
        self, key: ShareKey, *, state_epoch: int, leader_epoch: int, start: int, batches: Sequence[StateBatch]
    ) -> None:
        """Returns when it is committed. `batches` are what changed; `start` of -1 leaves it as it was."""

    async def delete(self, key: ShareKey) -> None:
        """No error when there is none."""

    async def summary(self, key: ShareKey) -> Summary:
        """For tools: fences nobody. Not initialized: UNINITIALIZED."""
