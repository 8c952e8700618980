"""The state of one partition of an internal topic, for as long as this broker leads it in one epoch."""

import asyncio
from abc import ABC, abstractmethod
from typing import ClassVar

from ottla.coordination.writing import Writer, WriteRules
from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.replica.partition import Partition

__all__ = ["CoordinatorShard"]


class CoordinatorShard(ABC):
    """`loading` until the log has been read; `ended` when another one leads."""

    holds: ClassVar[str]
    """What `count` counts, for the log."""

    def __init__(self, partition: Partition, *, clock: Clock, write_rules: WriteRules) -> None:
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.clock = clock
        self.loading = True
        self.ended = False
        self.replayed_offset = -1  # of the record that is being put in force
        self._writer = Writer(partition, clock=clock, rules=write_rules)

    def __str__(self) -> str:
        return str(self.partition)

    @property
    def leads(self) -> bool:
        return not self.ended and self.partition.view is not None and self.partition.leader_epoch == self.epoch

    @property
    @abstractmethod
    def count(self) -> int: ...

    def is_committed(self, offset: int) -> bool:
        return self.partition.high_watermark > offset

    async def until_committed(self, offset: int) -> None:
        """KafkaError when that will not be known here."""
        if self.is_committed(offset):
            return
        waiting: asyncio.Future[Code] = asyncio.get_running_loop().create_future()
        self._writer.when_committed(offset, lambda code: None if waiting.done() else waiting.set_result(code))
        if (code := await waiting) is not Code.none:
            raise KafkaError(code)

    @abstractmethod
    def replay(self, key: memoryview, value: memoryview | None) -> None:
        """Put a record of the log in force."""

    @abstractmethod
    def loaded(self) -> None:
        """Everything in the log is in force."""

    @abstractmethod
    def unload(self) -> None:
        """Another broker leads: whoever waits here must look for it."""
