"""The kept state of a share-partition, and the types of the requests for it. Pure."""

import base64
import binascii
import uuid
from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

import msgspec

from ottla.ids import uuid_text

__all__ = ["UNINITIALIZED", "Delivery", "Persister", "ShareKey", "ShareState", "StateBatch", "Summary", "is_key_text"]

ID_BYTES = 16
INT_MAX = 2**31 - 1
UNINITIALIZED = -1
"""The start offset of a new state: the leader then uses share.auto.offset.reset."""


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
        """Kafka's format; its hash also selects the partition of the state topic."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


def is_key_text(text: str) -> bool:
    """Whether it is a key in FindCoordinator: group:topic id:partition. As in Kafka, the group has no colon."""
    parts = text.split(":")
    return len(parts) == 3 and bool(parts[0].strip()) and _is_id(parts[1]) and _is_int(parts[2])


def _is_id(text: str) -> bool:
    try:
        return len(base64.b64decode(text + "==", altchars=b"-_", validate=True)) == ID_BYTES
    except (binascii.Error, ValueError):
        return False


def _is_int(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= INT_MAX


class StateBatch(msgspec.Struct, frozen=True, array_like=True):
    """Records from `first` to `last`, both inclusive, with the same state."""

    first: int
    last: int
    delivery: int
    count: int


class ShareState(msgspec.Struct, frozen=True, array_like=True):
    """Records before `start` are final; records in no batch are available and were never delivered."""

    state_epoch: int = 0
    start: int = UNINITIALIZED
    batches: tuple[StateBatch, ...] = ()


class Summary(msgspec.Struct, frozen=True, array_like=True):
    state_epoch: int = 0
    start: int = UNINITIALIZED
    leader_epoch: int = 0


class Persister(Protocol):
    """Stores states durably at their coordinator. It retries; then it raises KafkaError:

    COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR: retry later.
    FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH: the caller has been replaced.
    GROUP_ID_NOT_FOUND (only `write`), UNKNOWN_TOPIC_OR_PARTITION: the state does not exist.
    """

    async def initialize(self, key: ShareKey, *, state_epoch: int, start: int) -> None:
        """Create the state, or reset it with a higher state epoch (AlterShareGroupOffsets)."""

    async def read(self, key: ShareKey, *, leader_epoch: int) -> ShareState:
        """For a partition's new leader; fences older leaders. Not initialized: epoch 0, no start."""

    async def write(
        self, key: ShareKey, *, state_epoch: int, leader_epoch: int, start: int, batches: Sequence[StateBatch]
    ) -> None:
        """Returns when committed. `batches` are the changes; a `start` of -1 means unchanged."""

    async def delete(self, key: ShareKey) -> None:
        """No error if the state does not exist."""

    async def summary(self, key: ShareKey) -> Summary:
        """For tools: fences no leader. Not initialized: UNINITIALIZED."""
