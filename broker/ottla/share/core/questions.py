"""What the persister asks the broker that coordinates a share-partition: MessagePack, by method. Pure."""

from abc import abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from ottla.share.core.messages import Persister, ShareKey, ShareState, StateBatch, Summary

__all__ = ["QUESTIONS", "Delete", "Initialize", "Question", "Read", "Reply", "Summarize", "Write"]

Told = TypeVar("Told")
NIL = msgspec.Raw(b"\xc0")


class Reply(msgspec.Struct, frozen=True):
    """Kafka's code and what to say about it; `told` when there is nothing to complain of."""

    code: int = 0
    message: str = ""
    told: msgspec.Raw = NIL


class Question(msgspec.Struct, Generic[Told], frozen=True, kw_only=True):
    method: ClassVar[str]
    tells: ClassVar[Any]
    """The type of the answer."""

    key: ShareKey

    @abstractmethod
    async def put_to(self, states: Persister) -> Told: ...

    def read_answer(self, data: msgspec.Raw) -> Told:
        told: Told = msgspec.msgpack.decode(data, type=self.tells)
        return told


class Initialize(Question[None], frozen=True, kw_only=True):
    method, tells = "InitializeShareState", None

    state_epoch: int
    start: int

    async def put_to(self, states: Persister) -> None:
        await states.initialize(self.key, state_epoch=self.state_epoch, start=self.start)


class Read(Question[ShareState], frozen=True, kw_only=True):
    method, tells = "ReadShareState", ShareState

    leader_epoch: int

    async def put_to(self, states: Persister) -> ShareState:
        return await states.read(self.key, leader_epoch=self.leader_epoch)


class Write(Question[None], frozen=True, kw_only=True):
    method, tells = "WriteShareState", None

    state_epoch: int
    leader_epoch: int
    start: int
    batches: tuple[StateBatch, ...]

    async def put_to(self, states: Persister) -> None:
        await states.write(
            self.key,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start=self.start,
            batches=self.batches,
        )


class Delete(Question[None], frozen=True, kw_only=True):
    method, tells = "DeleteShareState", None

    async def put_to(self, states: Persister) -> None:
        await states.delete(self.key)


class Summarize(Question[Summary], frozen=True, kw_only=True):
    method, tells = "SummarizeShareState", Summary

    async def put_to(self, states: Persister) -> Summary:
        return await states.summary(self.key)


QUESTIONS: tuple[type[Question[Any]], ...] = (Initialize, Read, Write, Delete, Summarize)
