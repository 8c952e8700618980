"""Encoded partitions of topics do not outlive them for long."""

from ottla.api.cluster_view import SIZE_MIN, PartitionCache
from ottla.metadata.decisions.commands import DeleteTopics, TopicRef
from support.decisions import Fleet

VERSION, LISTENER = 12, "PLAINTEXT"


def test_deleted_topics_are_forgotten() -> None:
    fleet, cache = Fleet(), PartitionCache()
    fleet.topic([0], name="stays")
    for number in range(10 * SIZE_MIN):
        name = f"passing-{number}"
        fleet.topic([0], name=name)
        for topic in ("stays", name):
            cache.encoded(fleet.image, fleet.image.topics[topic], VERSION, LISTENER)
        fleet.ask(DeleteTopics([TopicRef(name=name)]))
    assert len(cache) <= SIZE_MIN


def test_topics_that_are_there_stay() -> None:
    fleet, cache = Fleet(), PartitionCache()
    for number in range(3 * SIZE_MIN):
        fleet.topic([0], name=f"t{number}")
    first = [cache.encoded(fleet.image, topic, VERSION, LISTENER) for topic in fleet.image.topics.values()]
    again = [cache.encoded(fleet.image, topic, VERSION, LISTENER) for topic in fleet.image.topics.values()]
    assert len(cache) == 3 * SIZE_MIN
    assert all(one is other for one, other in zip(first, again, strict=True))
