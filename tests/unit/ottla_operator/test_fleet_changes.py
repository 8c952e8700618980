"""Changes of many topics: what is wrong with one does not stop the others."""

import asyncio

import pytest
from ottla.pb import control_pb2 as pb
from ottla_operator.brokers.fleet import Fleet, FleetRefused, FleetUnavailable
from ottla_operator.plans.topics import TopicChange


class Brokers(Fleet):
    """Brokers that refuse a whole request when a topic of it is bad, and say yes to others."""

    def __init__(self, *, bad: frozenset[str] = frozenset(), down: bool = False) -> None:
        super().__init__()
        self._bad, self._down, self.requests = bad, down, 0

    async def _send(self, method, message, *, seconds_max=3.0):
        self.requests += 1
        if self._down:
            raise FleetUnavailable("no controller answers")
        if self._bad & {topic.name for topic in message.topics}:
            raise FleetRefused("too large")
        return pb.TopicsReply(topics=[pb.TopicOutcome(name=topic.name) for topic in message.topics])


def _changes(count: int, **configs: str) -> list[TopicChange]:
    return [TopicChange(name=f"t{number}", partitions=1, configs=configs) for number in range(count)]


def test_a_request_that_is_refused_for_one_topic_is_divided():
    brokers = Brokers(bad=frozenset({"t7"}))
    outcomes = asyncio.run(brokers.create_topics(_changes(1000)))
    assert len(outcomes) == 1000 and brokers.requests < 25
    assert [name for name, outcome in outcomes.items() if outcome.code] == ["t7"]
    assert "too large" in outcomes["t7"].message


def test_a_topic_that_cannot_be_sent_is_its_own_problem():
    odd = TopicChange(name="odd", configs={"retention.ms": "\ud800"})
    outcomes = asyncio.run(Brokers().alter_topics([*_changes(3), odd]))
    assert [name for name, outcome in outcomes.items() if outcome.code] == ["odd"]


def test_brokers_that_do_not_answer_are_not_asked_topic_by_topic():
    brokers = Brokers(down=True)
    with pytest.raises(FleetUnavailable):
        asyncio.run(brokers.create_topics(_changes(1000)))
    assert brokers.requests == 1
