"""Topics as consumer groups see them: ids, partition counts and racks from the metadata image. Pure."""

import hashlib
from collections.abc import Iterable, Mapping

from ottla.group.consumer.assignors import TopicFacts
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Topic

__all__ = ["facts_of", "ids_of", "metadata_hash"]


def ids_of(image: Image, names: Iterable[str]) -> dict[str, bytes]:
    """The ids of the existing ones."""
    return {name: topic.id.bytes for name in names if (topic := image.topics.get(name)) is not None}


def facts_of(image: Image, names: Iterable[str], *, with_racks: bool) -> dict[bytes, TopicFacts]:
    topics = [topic for name in names if (topic := image.topics.get(name)) is not None]
    racks = _racks(image) if with_racks else {}
    return {topic.id.bytes: TopicFacts(len(topic.partitions), _racks_of(topic, racks)) for topic in topics}


def _racks(image: Image) -> Mapping[int, str]:
    return {broker.id: broker.rack for broker in image.brokers.values() if broker.rack is not None}


def _racks_of(topic: Topic, racks: Mapping[int, str]) -> list[frozenset[str]]:
    if not racks:
        return []
    return [frozenset(racks[at] for at in each.replicas if at in racks) for each in topic.partitions]


def metadata_hash(image: Image, names: Iterable[str]) -> int:
    """Changes when a subscribed topic is created, deleted or grows, or its replicas change racks (KIP-1101). Never
    0."""
    racks = _racks(image)
    digest = hashlib.blake2b(digest_size=8)
    found = sorted(name for name in names if name in image.topics)
    for name in found:
        topic = image.topics[name]
        places = [sorted(each) for each in _racks_of(topic, racks)]
        digest.update(f"{name}\0{topic.id.hex}\0{len(topic.partitions)}\0{places}\n".encode())
    return int.from_bytes(digest.digest(), signed=True) or 1 if found else 0
