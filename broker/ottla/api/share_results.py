"""What ShareFetch and ShareAcknowledge have in common: acknowledgements in, leaders and endpoints out."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.api.authorizing import TopicAccess
from ottla.api.call import Call
from ottla.api.cluster_view import brokers_on
from ottla.errors import Code, KafkaError
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.host import ReplicaHost
from ottla.share.core.acknowledging import Acknowledgement
from ottla.share.core.sessions import ShareSession, Wanted
from ottla.share.host import ShareHost

__all__ = ["Acknowledging", "SharePlacement", "acknowledge", "by_topic", "close_with_connection", "given"]

NO_TOPIC = bytes(16)
Outcome = KafkaError | None


class Acknowledging(NamedTuple):
    """Under way: in force for whoever comes next, and to be answered when it is committed."""

    failed: dict[Wanted, KafkaError]
    pending: "dict[Wanted, asyncio.Future[None]]"

    async def outcomes(self) -> dict[Wanted, Outcome]:
        """By partition: None when it is committed."""
        found: dict[Wanted, Outcome] = dict(self.failed)
        results = await asyncio.gather(*self.pending.values(), return_exceptions=True)
        for wanted, result in zip(self.pending, results, strict=True):
            if isinstance(result, BaseException) and not isinstance(result, KafkaError):
                raise result
            found[wanted] = result
        return found


def given(topics: Iterable[Any]) -> dict[Wanted, list[Acknowledgement]]:
    """The acknowledgements in a request; partitions without any have an empty list."""
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
    acknowledgements: Mapping[Wanted, list[Acknowledgement]],
    shares: ShareHost,
    readable: TopicAccess | None,
) -> Acknowledging:
    under_way = Acknowledging({}, {})
    for wanted, each in acknowledgements.items():
        try:
            if readable is not None:
                readable.require(wanted[0])
            hosted = shares.find(session.group_id, wanted)
            if hosted is None:
                raise KafkaError(Code.unknown_topic_or_partition, "nothing of it was acquired from this broker")
            under_way.pending[wanted] = hosted.acknowledge(session.member_id, each)
        except KafkaError as error:
            under_way.failed[wanted] = error
    return under_way


def close_with_connection(session: ShareSession, call: Call, shares: ShareHost) -> None:
    """A session ends with the connection that opened it."""
    if call.on_close is not None:
        call.on_close[session.group_id, session.member_id] = lambda: shares.close_session(session)


def by_topic(parts: Mapping[Wanted, dict[str, Any]]) -> list[dict[str, Any]]:
    topics: dict[bytes, list[dict[str, Any]]] = {}
    for (topic, _), part in parts.items():
        topics.setdefault(topic, []).append(part)
    return [{"topic_id": topic, "partitions": lines} for topic, lines in topics.items()]


class SharePlacement:
    """Where clients find the leaders of what they asked the wrong broker for."""

    def __init__(self, replicas: ReplicaHost, feed: MetadataFeed) -> None:
        self._replicas = replicas
        self._feed = feed

    @property
    def image(self) -> Image:
        return self._feed.image

    def leader_of(self, wanted: Wanted, error: Outcome) -> dict[str, int]:
        """Only where the client asked the wrong broker."""
        known = None
        if error is not None and error.code in (Code.not_leader_or_follower, Code.fenced_leader_epoch):
            known = self._replicas.leader_of(*wanted)
        leader, epoch = known or (-1, -1)
        return {"leader_id": leader, "leader_epoch": epoch}

    def endpoints(self, parts: Iterable[dict[str, Any]], listener: str) -> list[dict[str, Any]]:
        """Of the leaders that `leader_of` gave."""
        leaders = {part["current_leader"]["leader_id"] for part in parts} - {-1}
        return [
            {"node_id": broker.id, "host": broker.host, "port": broker.port, "rack": broker.rack}
            for broker in (brokers_on(self.image, listener) if leaders else ())
            if broker.id in leaders
        ]
