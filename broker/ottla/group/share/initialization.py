"""Which share-partitions of a group have a state at the persister, as the group records it. Pure.

    subscribed, not recorded ─▶ initializing ─ persister made it ─▶ initialized ─ its offsets are deleted ─▶ deleting

Every step is recorded before the next one starts, so that the next coordinator can finish it: initializing a state that
exists and deleting one that does not are no errors. `group.persisting` performs the steps.
"""

from collections.abc import Iterable, Mapping

from ottla.group.consumer.member import Partition, Partitions
from ottla.group.share.records import StatePartitions, TopicStates
from ottla.metadata.model.image import Image

__all__ = [
    "assignable",
    "deleted_topics",
    "finish_deleting",
    "finish_initializing",
    "partitions_in",
    "start_deleting",
    "start_initializing",
    "uninitialized",
]

Found = Mapping[bytes, TopicStates]


def partitions_in(found: Found) -> Partitions:
    return frozenset((topic_id, index) for topic_id, each in found.items() for index in each.partitions)


def uninitialized(states: StatePartitions, names: Iterable[str], image: Image) -> Partitions:
    """Partitions of these topics that are not recorded as initialized."""
    wanted: set[Partition] = set()
    for name in names:
        if (topic := image.topics.get(name)) is not None:
            wanted |= {(topic.id.bytes, index) for index in range(len(topic.partitions))}
    return frozenset(wanted) - partitions_in(states.initialized)


def assignable(states: StatePartitions, names: Iterable[str], image: Image) -> dict[bytes, int]:
    """For each of these topics that exists: how many of its partitions, counted from the first, have a state."""
    found = {}
    for name in names:
        topic = image.topics.get(name)
        known = states.initialized.get(topic.id.bytes) if topic is not None else None
        if topic is not None and known is not None:
            count = next((at for at in range(len(topic.partitions)) if at not in known.partitions), None)
            found[topic.id.bytes] = len(topic.partitions) if count is None else count
    return found


def deleted_topics(states: StatePartitions, image: Image) -> frozenset[bytes]:
    """Recorded topics that no longer exist."""
    known = {*states.initializing, *states.initialized, *states.deleting}
    return frozenset(known - {topic.id.bytes for topic in image.topics.values()})


# -- steps


def start_initializing(states: StatePartitions, partitions: Partitions, image: Image) -> StatePartitions:
    """Record these as initializing, also those that are initialized. A deletion of their topics is cancelled."""
    named = _named(partitions, image)
    deleting = {topic_id: name for topic_id, name in states.deleting.items() if topic_id not in named}
    return StatePartitions(_merged(states.initializing, named), states.initialized, deleting)


def finish_initializing(states: StatePartitions, partitions: Partitions) -> StatePartitions:
    """Record those of these that are initializing as initialized. A topic that was deleted meanwhile stays deleted."""
    done = {
        topic_id: TopicStates(
            each.name, each.partitions & frozenset(at for topic, at in partitions if topic == topic_id)
        )
        for topic_id, each in states.initializing.items()
    }
    rest = {
        topic_id: TopicStates(each.name, each.partitions - done[topic_id].partitions)
        for topic_id, each in states.initializing.items()
    }
    initialized = _merged(states.initialized, _filled(done))
    return StatePartitions(_filled(rest), initialized, states.deleting)


def start_deleting(
    states: StatePartitions, topic_ids: Iterable[bytes], image: Image
) -> tuple[StatePartitions, Partitions]:
    """Record these topics as deleting; also returns the partitions whose state must be deleted.

    The record of a topic that was deleting before does not name partitions, so all of the topic are returned.
    """
    gone = frozenset(topic_ids)
    known = _merged(states.initialized, states.initializing)
    deleting = dict(states.deleting) | {each: known[each].name for each in gone if each in known}
    initializing = {each: found for each, found in states.initializing.items() if each not in gone}
    initialized = {each: found for each, found in states.initialized.items() if each not in gone}
    going = partitions_in({each: known[each] for each in gone if each in known})
    going |= {
        (topic.id.bytes, index)
        for topic in image.topics.values()
        if topic.id.bytes in gone and topic.id.bytes in states.deleting
        for index in range(len(topic.partitions))
    }
    return StatePartitions(initializing, initialized, deleting), going


def finish_deleting(states: StatePartitions, topic_ids: Iterable[bytes]) -> StatePartitions:
    gone = frozenset(topic_ids)
    deleting = {each: name for each, name in states.deleting.items() if each not in gone}
    return StatePartitions(states.initializing, states.initialized, deleting)


def _named(partitions: Partitions, image: Image) -> dict[bytes, TopicStates]:
    names = {topic.id.bytes: topic.name for topic in image.topics.values()}
    indexes: dict[bytes, set[int]] = {}
    for topic_id, index in partitions:
        indexes.setdefault(topic_id, set()).add(index)
    return {each: TopicStates(names[each], frozenset(found)) for each, found in indexes.items() if each in names}


def _merged(old: Found, new: Found) -> dict[bytes, TopicStates]:
    merged = dict(old)
    for topic_id, each in new.items():
        known = merged.get(topic_id)
        merged[topic_id] = TopicStates(each.name, each.partitions | (known.partitions if known else frozenset()))
    return merged


def _filled(found: Found) -> dict[bytes, TopicStates]:
    return {topic_id: each for topic_id, each in found.items() if each.partitions}
