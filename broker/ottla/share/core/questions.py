"""The persister's requests to the broker that coordinates a share-partition: MessagePack, by method. Pure."""

from abc import abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from ottla.share.core.messages import Persister, ShareKey, ShareState, StateBatch, Summary

__all__ = ["QUESTIONS", "Delete", "Initialize", "Question", "Read", "Reply", "Summarize", "Write"]

Answered = TypeVar("Answered")
NIL = msgspec.Raw(b"\xc0")


class Reply(msgspec.Struct, frozen=True):
    """Kafka's code with a message, or the answer in `told` (the field's name on the wire)."""

    code: int = 0
    message: str = ""
    told: msgspec.Raw = NIL


class Question(msgspec.Struct, Generic[Answered], frozen=True, kw_only=True):
    method: ClassVar[str]
    answer_type: ClassVar[Any]
    """The type of the answer."""

    key: ShareKey

    @abstractmethod
    async def perform_on(self, states: Persister) -> Answered: ...

    def read_answer(self, data: msgspec.Raw) -> Answered:
        answer: Answered = msgspec.msgpack.decode(data, type=self.answer_type)
        return answer


class Initialize(Question[None], frozen=True, kw_only=True):
    method, answer_type = "InitializeShareState", None

    state_epoch: int
    start: int

    async def perform_on(self, states: Persister) -> None:
        await states.initialize(self.key, state_epoch=self.state_epoch, start=self.start)


class Read(Question[ShareState], frozen=True, kw_only=True):
    method, answer_type = "ReadShareState", ShareState

    leader_epoch: int

    async def perform_on(self, states: Persister) -> ShareState:
        return await states.read(self.key, leader_epoch=self.leader_epoch)


class Write(Question[None], frozen=True, kw_only=True):
    method, answer_type = "WriteShareState", None

    state_epoch: int
    leader_epoch: int
    start: int
    batches: tuple[StateBatch, ...]

    async def perform_on(self, states: Persister) -> None:
        await states.write(
            self.key,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start=self.start,
            batches=self.batches,
        )


class Delete(Question[None], frozen=True, kw_only=True):
    method, answer_type = "DeleteShareState", None

    async def perform_on(self, states: Persister) -> None:
        await states.delete(self.key)


class Summarize(Question[Summary], frozen=True, kw_only=True):
    method, answer_type = "SummarizeShareState", Summary

    async def perform_on(self, states: Persister) -> Summary:
        return await states.summary(self.key)


QUESTIONS: tuple[type[Question[Any]], ...] = (Initialize, Read, Write, Delete, Summarize)
