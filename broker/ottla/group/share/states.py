"""Which share-partitions of a group get a state, keep it or lose it: what the group records about its persister. Pure.

    subscribed, not recorded ─▶ initializing ─ persister made it ─▶ initialized ─ its offsets are deleted ─▶ deleting

Every step is written before the next begins, so that whoever coordinates next can finish it: beginning a state that is
there, and deleting one that is not, are no errors.
"""

from collections.abc import Iterable, Mapping

from ottla.group.consumer.member import Partition, Partitions
from ottla.group.share.records import StatePartitions, TopicStates
from ottla.metadata.model.image import Image

__all__ = [
    "assignable",
    "beginning",
    "begun",
    "lacking",
    "leaving",
    "left",
    "orphans",
    "partitions_in",
]

Found = Mapping[bytes, TopicStates]


def partitions_in(found: Found) -> Partitions:
    return frozenset((topic_id, index) for topic_id, each in found.items() for index in each.partitions)


def lacking(states: StatePartitions, names: Iterable[str], image: Image) -> Partitions:
    """Partitions of these topics without a state, or with one that may not have been made."""
    wanted: set[Partition] = set()
    for name in names:
        if (topic := image.topics.get(name)) is not None:
            wanted |= {(topic.id.bytes, index) for index in range(len(topic.partitions))}
    return frozenset(wanted) - partitions_in(states.initialized)


def assignable(states: StatePartitions, names: Iterable[str], image: Image) -> dict[bytes, int]:
    """Of those of these topics that exist, how many partitions, from the first one on, have a state."""
    found = {}
    for name in names:
        topic = image.topics.get(name)
        known = states.initialized.get(topic.id.bytes) if topic is not None else None
        if topic is not None and known is not None:
            count = next((at for at in range(len(topic.partitions)) if at not in known.partitions), None)
            found[topic.id.bytes] = len(topic.partitions) if count is None else count
    return found


def orphans(states: StatePartitions, image: Image) -> frozenset[bytes]:
    """Recorded topics that exist no more."""
    known = {*states.initializing, *states.initialized, *states.deleting}
    return frozenset(known - {topic.id.bytes for topic in image.topics.values()})


# -- steps


def beginning(states: StatePartitions, partitions: Partitions, image: Image) -> StatePartitions:
    """These are about to begin, or to begin again. The deletion of their topics is called off."""
    named = _named(partitions, image)
    deleting = {topic_id: name for topic_id, name in states.deleting.items() if topic_id not in named}
    return StatePartitions(_merged(states.initializing, named), states.initialized, deleting)


def begun(states: StatePartitions, partitions: Partitions) -> StatePartitions:
    """Those that are still recorded as beginning have begun. A topic that was deleted meanwhile stays deleted."""
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


def leaving(states: StatePartitions, topic_ids: Iterable[bytes], image: Image) -> tuple[StatePartitions, Partitions]:
    """All states of these topics are about to be deleted; which those are.

    Of a topic whose deletion has begun already, the partitions are recorded no longer: it may be any that exists.
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


def left(states: StatePartitions, topic_ids: Iterable[bytes]) -> StatePartitions:
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
