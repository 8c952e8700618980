"""The state of one partition of an internal topic, while this broker leads it in one epoch."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from ottla.coordination.core.effects import Compute
from ottla.coordination.runner import Runner
from ottla.coordination.writing import WriteRules
from ottla.ports import Clock
from ottla.replica.partition import Partition

__all__ = ["CoordinatorShard"]

log = logging.getLogger("ottla.coordination")


class CoordinatorShard(ABC):
    """`loading` until the log is replayed; `ended` when another broker leads."""

    holds: ClassVar[str]
    """What `count` counts, for the log."""

    def __init__(self, partition: Partition, *, clock: Clock, write_rules: WriteRules) -> None:
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.clock = clock
        self.loading = True
        self.ended = False
        self.replayed_offset = -1  # of the record that is being replayed
        self._runner = Runner(
            partition,
            clock=clock,
            rules=write_rules,
            on_perform=self.on_perform,
            on_deadline=self.on_deadline,
            on_send=self.on_send,
            on_compute=self.on_compute,
        )

    def __str__(self) -> str:
        return str(self.partition)

    @property
    def leads(self) -> bool:
        return not self.ended and self.partition.view is not None and self.partition.leader_epoch == self.epoch

    @property
    @abstractmethod
    def count(self) -> int: ...

    def is_committed(self, offset: int) -> bool:
        return self._runner.is_committed(offset)

    async def until_committed(self, offset: int) -> None:
        """KafkaError when this broker stops leading first, or on time-out."""
        await self._runner.until_committed(offset, timeout_s=self._runner.commit_s_max)

    @contextmanager
    def isolating_errors(self, key: str) -> Iterator[None]:
        """Errors of this state machine inside the block are logged; the others are still served."""
        try:
            yield
        except Exception:
            log.exception("%s: %s failed and keeps its state; the others are still served", self, key)

    # called by the runner

    def on_perform(self, key: str) -> None:  # noqa: B027 - most shards do nothing here
        """Called before effects of this state machine are performed."""

    def on_deadline(self, key: str) -> None:
        """The state machine requested this time by Wake."""
        raise AssertionError(f"{key} asked to be woken, but {type(self).__name__} has no on_deadline")

    def on_send(self, message: Any) -> None:
        """Deliver the message when everything written before it is committed."""
        raise AssertionError(f"{message} is to be sent, but {type(self).__name__} has no on_send")

    def on_compute(self, key: str, compute: Compute) -> None:
        """Run the work in a thread, then perform the effects that follow."""
        raise NotImplementedError(f"{type(self).__name__} computes nothing: {key}")

    # called by the coordinator and by loading

    @abstractmethod
    def replay(self, key: memoryview, value: memoryview | None) -> None:
        """Apply a record of the log to the state."""

    @abstractmethod
    def loaded(self) -> None:
        """The whole log has been replayed."""

    @abstractmethod
    def unload(self) -> None:
        """Another broker leads: waiting requests are answered with NOT_COORDINATOR."""
