"""Common parts of ShareFetch and ShareAcknowledge: acknowledgements in requests, leader hints in responses."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ottla.api.authorizing import TopicAccess
from ottla.api.call import Call
from ottla.api.cluster_view import brokers_on
from ottla.errors import Code, KafkaError
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.host import ReplicaHost
from ottla.share.core.acknowledging import Acknowledgement
from ottla.share.core.sessions import ShareSession, TopicIdPartition
from ottla.share.host import ShareHost

__all__ = [
    "LeaderHints",
    "PendingAcknowledgements",
    "acknowledge",
    "acknowledgements_in",
    "by_topic",
    "close_with_connection",
]

NO_TOPIC = bytes(16)
Outcome = KafkaError | None


class PendingAcknowledgements(NamedTuple):
    """Acknowledgements that are applied and not committed yet; they are answered when committed."""

    failed: dict[TopicIdPartition, KafkaError]
    futures: "dict[TopicIdPartition, asyncio.Future[None]]"

    async def outcomes(self) -> dict[TopicIdPartition, Outcome]:
        """The error of each partition; None when its acknowledgements are committed."""
        found: dict[TopicIdPartition, Outcome] = dict(self.failed)
        results = await asyncio.gather(*self.futures.values(), return_exceptions=True)
        for wanted, result in zip(self.futures, results, strict=True):
            if isinstance(result, BaseException) and not isinstance(result, KafkaError):
                raise result
            found[wanted] = result
        return found


def acknowledgements_in(topics: Iterable[Any]) -> dict[TopicIdPartition, list[Acknowledgement]]:
    """The acknowledgements of a request by partition; an empty list for partitions without any."""
    return {
        (topic.topic_id or NO_TOPIC, part.partition_index): [
            Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types)
            for each in part.acknowledgement_batches
        ]
        for topic in topics
        for part in topic.partitions
    }


def acknowledge(
    session: ShareSession,
    acknowledgements: Mapping[TopicIdPartition, list[Acknowledgement]],
    shares: ShareHost,
    readable: TopicAccess | None,
) -> PendingAcknowledgements:
    pending = PendingAcknowledgements({}, {})
    for wanted, each in acknowledgements.items():
        try:
            if readable is not None:
                readable.require(wanted[0])
            hosted = shares.find(session.group_id, wanted)
            if hosted is None:
                raise KafkaError(
                    Code.unknown_topic_or_partition, "no records of this share-partition were acquired from this broker"
                )
            pending.futures[wanted] = hosted.acknowledge(session.member_id, each)
        except KafkaError as error:
            pending.failed[wanted] = error.with_traceback(None)  # whose frame has `pending`: a cycle for each
    return pending


def close_with_connection(session: ShareSession, call: Call, shares: ShareHost) -> None:
    """A session ends with the connection that opened it, which forgets it when it ends before."""
    on_close = call.on_close
    if on_close is not None:
        on_close[session] = partial(shares.close_session, session)
        session.on_end = lambda: _forget(session, on_close)


def _forget(session: ShareSession, on_close: dict[object, Callable[[], None]]) -> None:
    on_close.pop(session, None)


def by_topic(parts: Mapping[TopicIdPartition, dict[str, Any]]) -> list[dict[str, Any]]:
    topics: dict[bytes, list[dict[str, Any]]] = {}
    for (topic, _), part in parts.items():
        topics.setdefault(topic, []).append(part)
    return [{"topic_id": topic, "partitions": lines} for topic, lines in topics.items()]


class LeaderHints:
    """The current leaders of partitions for which the client sent its request to the wrong broker."""

    def __init__(self, replicas: ReplicaHost, feed: MetadataFeed) -> None:
        self._replicas = replicas
        self._feed = feed

    @property
    def image(self) -> Image:
        return self._feed.image

    def leader_of(self, wanted: TopicIdPartition, error: Outcome) -> dict[str, int]:
        """The leader, if the error says that this broker is not it; otherwise -1."""
        known = None
        if error is not None and error.code in (Code.not_leader_or_follower, Code.fenced_leader_epoch):
            known = self._replicas.leader_of(*wanted)
        leader, epoch = known or (-1, -1)
        return {"leader_id": leader, "leader_epoch": epoch}

    def endpoints(self, parts: Iterable[dict[str, Any]], listener: str) -> list[dict[str, Any]]:
        """The endpoints of the leaders in these partitions."""
        leaders = {part["current_leader"]["leader_id"] for part in parts} - {-1}
        return [
            {"node_id": broker.id, "host": broker.host, "port": broker.port, "rack": broker.rack}
            for broker in (brokers_on(self.image, listener) if leaders else ())
            if broker.id in leaders
        ]
