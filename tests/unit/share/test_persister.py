"""Whom the persister asks, how often, and what it makes of the answers. Coordinators are played by the test."""

import asyncio
import uuid
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.coordination.asking import Asking, Unreachable
from ottla.errors import Code, KafkaError
from ottla.share import persister as module
from ottla.share.core.messages import Persister, ShareKey, ShareState, StateBatch, Summary
from ottla.share.persister import CoordinatedPersister
from ottla.system import RealClock

KEY = ShareKey("g", uuid.uuid4(), 3)
STATE = ShareState(2, 10, (StateBatch(11, 12, 2, 1),))
HERE, THERE, NOBODY = 1, 2, -1


class Coordinator:
    """Answers with what it is given, one after the other, the last one for ever; notes what it is asked."""

    def __init__(self, *answers: Any, leaders: Sequence[int] = (HERE,)) -> None:
        self.answers, self.leaders = list(answers), list(leaders)
        self.asked: list[tuple[str, ShareKey, dict[str, Any]]] = []

    async def leader_of(self, key: str) -> int:
        assert key == str(KEY)
        return self.leaders.pop(0) if len(self.leaders) > 1 else self.leaders[0]

    def __getattr__(self, method: str) -> Any:
        async def ask(key: ShareKey, **question: Any) -> Any:
            self.asked.append((method, key, question))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return ask


def make(here: Coordinator, there: Coordinator | None = None, *, knows_topic: bool = True) -> CoordinatedPersister:
    """`there` is on another broker: what is asked of it goes through the messages, as over the network."""
    broker = SimpleNamespace(grpc_host="there", grpc_port=9)
    image = SimpleNamespace(brokers={THERE: broker}, topics_by_id={KEY.topic_id: None} if knows_topic else {})
    feed: Any = SimpleNamespace(image=image)
    far = Asking(node_id=THERE, feed=feed, call=None)
    if there is not None:
        CoordinatedPersister(there, asking=far, feed=feed, clock=RealClock())  # type: ignore[arg-type]

    async def call(address: str, method: str, data: bytes) -> bytes:
        assert address == "there:9"
        if there is None:
            raise Unreachable("nobody is there")
        return await far.answers[method](data)

    asking = Asking(node_id=HERE, feed=feed, call=call)
    return CoordinatedPersister(here, asking=asking, feed=feed, clock=RealClock())  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(module, "PAUSE_SECONDS_MIN", 0.001)


async def ask_all(persister: Persister) -> list[Any]:
    batches = [StateBatch(1, 2, 2, 1)]
    return [
        await persister.initialize(KEY, state_epoch=1, start=5),
        await persister.read(KEY, leader_epoch=4),
        await persister.write(KEY, state_epoch=1, leader_epoch=4, start=-1, batches=batches),
        await persister.delete(KEY),
        await persister.summary(KEY),
    ]


@pytest.mark.parametrize("leader", [HERE, THERE])
def test_questions_and_answers_arrive_as_they_are(leader: int) -> None:
    answering = Coordinator(None, STATE, None, None, Summary(1, 2, 3))
    here = answering if leader == HERE else Coordinator(leaders=[THERE])
    told = asyncio.run(ask_all(make(here, answering)))
    assert told == [None, STATE, None, None, Summary(1, 2, 3)]
    assert answering.asked == [
        ("initialize", KEY, {"state_epoch": 1, "start": 5}),
        ("read", KEY, {"leader_epoch": 4}),
        ("write", KEY, {"state_epoch": 1, "leader_epoch": 4, "start": -1, "batches": (StateBatch(1, 2, 2, 1),)}),
        ("delete", KEY, {}),
        ("summary", KEY, {}),
    ]


@pytest.mark.parametrize("leader", [HERE, THERE])
@pytest.mark.parametrize("code", [Code.fenced_state_epoch, Code.fenced_leader_epoch, Code.group_id_not_found])
def test_a_refusal_is_told_at_once(leader: int, code: Code) -> None:
    answering = Coordinator(KafkaError(code, "because"))
    here = answering if leader == HERE else Coordinator(leaders=[THERE])
    with pytest.raises(KafkaError, match="because") as refused:
        asyncio.run(make(here, answering).read(KEY, leader_epoch=1))
    assert refused.value.code is code and len(answering.asked) == 1


@pytest.mark.parametrize("code", [Code.not_coordinator, Code.coordinator_load_in_progress])
def test_it_goes_on_asking_and_follows_the_leader(code: Code) -> None:
    here = Coordinator(
        KafkaError(code), KafkaError(Code.coordinator_not_available), leaders=[HERE, NOBODY, HERE, THERE]
    )
    there = Coordinator(KafkaError(code), STATE)
    assert asyncio.run(make(here, there).read(KEY, leader_epoch=1)) == STATE
    assert len(here.asked) == 2 and len(there.asked) == 2


def test_it_gives_up_in_the_end() -> None:
    for here, there in (
        (Coordinator(KafkaError(Code.not_coordinator)), None),
        (Coordinator(leaders=[NOBODY]), None),
        (Coordinator(leaders=[THERE]), None),
        (Coordinator(leaders=[THERE]), Coordinator(TypeError("nobody thought of this"))),
    ):
        with pytest.raises(KafkaError) as refused:
            asyncio.run(make(here, there).read(KEY, leader_epoch=1))
        assert refused.value.code in (Code.not_coordinator, Code.coordinator_not_available)


def test_one_who_does_not_answer_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Coordinator):
        async def read(self, key: ShareKey, **question: Any) -> ShareState:
            self.asked.append(("read", key, question))
            if len(self.asked) < 2:
                await asyncio.sleep(60)
            return STATE

    monkeypatch.setattr(module, "ANSWER_SECONDS_MAX", 0.05)
    assert asyncio.run(make(Coordinator(leaders=[THERE]), Silent()).read(KEY, leader_epoch=1)) == STATE


def test_a_topic_that_is_new_there_and_one_that_is_gone() -> None:
    unknown = KafkaError(Code.unknown_topic_or_partition)
    here = Coordinator(unknown, unknown, STATE)
    assert asyncio.run(make(here).read(KEY, leader_epoch=1)) == STATE
    here = Coordinator(unknown, unknown, STATE)
    with pytest.raises(KafkaError):
        asyncio.run(make(here, knows_topic=False).read(KEY, leader_epoch=1))
    assert len(here.asked) == 1
