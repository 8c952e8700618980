"""The client of the share coordinator: sends each request to the broker that coordinates its key, perhaps this one.

All requests are idempotent (see `core/state`), so a request without an answer is retried.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from ottla.coordination.asking import Asking, Unreachable
from ottla.errors import Code, KafkaError
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.ports import Clock
from ottla.share.coordinator import ShareCoordinator
from ottla.share.core.messages import ShareKey, ShareState, StateBatch, Summary
from ottla.share.core.questions import QUESTIONS, Delete, Initialize, Question, Read, Reply, Summarize, Write

__all__ = ["CoordinatedPersister"]

PATIENCE_SECONDS = 10.0
ANSWER_SECONDS_MAX = 6.0  # longer than a coordinator waits for its replicas
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.02, 0.5
TRY_AGAIN = frozenset({Code.coordinator_not_available, Code.coordinator_load_in_progress, Code.not_coordinator})
Answered = TypeVar("Answered")


class CoordinatedPersister:
    def __init__(self, coordinator: ShareCoordinator, *, asking: Asking, feed: MetadataFeed, clock: Clock) -> None:
        self._coordinator = coordinator
        self._asking = asking
        self._feed = feed
        self._clock = clock
        for kind in QUESTIONS:
            asking.answers[kind.method] = self._answering(kind)

    async def initialize(self, key: ShareKey, *, state_epoch: int, start: int) -> None:
        await self._ask(Initialize(key=key, state_epoch=state_epoch, start=start))

    async def read(self, key: ShareKey, *, leader_epoch: int) -> ShareState:
        return await self._ask(Read(key=key, leader_epoch=leader_epoch))

    async def write(
        self, key: ShareKey, *, state_epoch: int, leader_epoch: int, start: int, batches: Sequence[StateBatch]
    ) -> None:
        question = Write(
            key=key, state_epoch=state_epoch, leader_epoch=leader_epoch, start=start, batches=tuple(batches)
        )
        await self._ask(question)

    async def delete(self, key: ShareKey) -> None:
        await self._ask(Delete(key=key))

    async def summary(self, key: ShareKey) -> Summary:
        return await self._ask(Summarize(key=key))

    # asking

    async def _ask(self, question: Question[Answered]) -> Answered:
        give_up_at, pause = self._clock.monotonic() + PATIENCE_SECONDS, PAUSE_SECONDS_MIN
        while True:
            try:
                return await self._ask_once(question, give_up_at - self._clock.monotonic())
            except KafkaError as error:
                if not self._may_pass(error.code, question.key) or self._clock.monotonic() + pause >= give_up_at:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _may_pass(self, code: Code, key: ShareKey) -> bool:
        """UNKNOWN_TOPIC_OR_PARTITION may pass if this broker knows the topic: then it is new to the coordinator."""
        is_known = code is Code.unknown_topic_or_partition and key.topic_id in self._feed.image.topics_by_id
        return code in TRY_AGAIN or is_known

    async def _ask_once(self, question: Question[Answered], seconds_left: float) -> Answered:
        try:
            broker_id = await self._coordinator.leader_of(str(question.key))
        except KafkaError as error:
            raise KafkaError(Code.coordinator_not_available, f"the state topic cannot be created: {error}") from error
        if broker_id == self._asking.node_id:
            return await question.perform_on(self._coordinator)
        try:
            async with asyncio.timeout(min(seconds_left, ANSWER_SECONDS_MAX)):
                return await self._ask_other(broker_id, question)
        except (Unreachable, TimeoutError) as error:
            message = f"broker {broker_id}, which keeps the state of {question.key}, does not answer: {error}"
            raise KafkaError(Code.coordinator_not_available, message) from error

    async def _ask_other(self, broker_id: int, question: Question[Answered]) -> Answered:
        with self._asking.errors_as_unreachable(broker_id):
            reply = await self._asking.ask(broker_id, question.method, question, Reply)
            code = Code(reply.code)
            if code is Code.none:
                return question.read_answer(reply.told)
        raise KafkaError(code, reply.message)

    # answering

    def _answering(self, kind: type[Question[Any]]) -> Callable[[bytes], Awaitable[bytes]]:
        return partial(self._answer, kind)

    async def _answer(self, kind: type[Question[Any]], data: bytes) -> bytes:
        question = msgspec.msgpack.decode(data, type=kind)
        try:
            answer = await question.perform_on(self._coordinator)
        except KafkaError as error:
            return msgspec.msgpack.encode(Reply(error.code, error.message or ""))
        return msgspec.msgpack.encode(Reply(told=msgspec.Raw(msgspec.msgpack.encode(answer))))
