"""Metadata: the brokers, and topics with their partitions and leaders; unknown topics are made where that is allowed.

v1 all topics is null · v4 allow_auto_topic_creation · v5 offline replicas · v7 leader epochs · v8 authorized
operations · v9 flexible · v10 topic ids · v12 topics by id · v13 top-level error (KIP-1102).
"""

import uuid
from collections.abc import Awaitable, Iterable

from ottla.api.authorizing import (
    NOT_ASKED,
    TopicAccess,
    may,
    may_cluster,
    operations,
    operations_if,
    refusal,
    sees,
    topic_access,
)
from ottla.api.call import Answer, Call
from ottla.api.cluster_view import ClusterView, brokers_on
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import MetadataRequest, MetadataRequestTopic
from ottla.api.slices import AnswerTooLarge, grow, paced
from ottla.api.topic_making import auto_create, is_legal_name
from ottla.errors import Code, KafkaError
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Topic
from ottla.metadata.model.topic_names import INTERNAL_TOPICS
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.settings import LiveSettings
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.wire.metadata_response import MetadataHead, encode_topic, response

NO_ID = bytes(16)
TOPICS_AT_ONCE_MAX = 200
CLUSTER_OPERATIONS = range(8, 11)
NO_PARTITIONS = {True: b"\1", False: b"\0\0\0\0"}


class Rights:
    """Of one request: which topics may be told of, and which may be made."""

    def __init__(self, request: MetadataRequest, call: Call, image: Image) -> None:
        self._call = call
        self._asks_operations = call.version >= 8 and request.include_topic_authorized_operations
        self._describable: TopicAccess | None = topic_access(call, Operation.DESCRIBE, image)
        self._uncreatable: set[str] = set()

    def lists(self, topic: str) -> bool:
        """One that nobody named."""
        return self._describable is None or sees(self._call, Operation.DESCRIBE, Resource.TOPIC, topic)

    def refuse(self, topic: str | bytes) -> KafkaError | None:
        """One that was named: as if nothing was known of it."""
        if self._describable is None:
            return None
        if topic in self._uncreatable:
            return refusal(Operation.CREATE, Resource.TOPIC, str(topic))
        return self._describable.refused(topic)

    async def creatable(self, missing: Iterable[str]) -> list[str]:
        """Of topics that do not exist; the others are refused from now on."""
        if self._describable is None or sees(self._call, Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME):
            return [name async for name in paced(missing, self._call) if self.refuse(name) is None]
        allowed = []
        async for name in paced(missing, self._call):
            if self._describable.refused(name) is None:
                if may(self._call, Operation.CREATE, Resource.TOPIC, name):
                    allowed.append(name)
                else:
                    self._uncreatable.add(name)
        return allowed

    def operations(self, topic: str | None) -> int:
        return operations_if(self._asks_operations, self._call, Resource.TOPIC, topic or "")


@api(key=3, versions=(0, 13), elements_max=None)
def metadata(
    request: MetadataRequest,
    call: Call,
    feed: MetadataFeed,
    view: ClusterView,
    settings: LiveSettings,
    controller: ControllerClient,
) -> Answer | Awaitable[Answer]:
    image = feed.image
    missing = _missing(request, call, image, settings)
    if missing:
        return _create_and_answer(missing, request, call, feed, view, controller)
    rights = Rights(request, call, image)
    if _topics_count(request, call, image) > TOPICS_AT_ONCE_MAX:
        return _answer_in_slices(request, rights, call, feed, view)
    return _answer(request, rights, call, image, view)


def _wants_everything(request: MetadataRequest, call: Call) -> bool:
    return request.topics is None or (call.version == 0 and not request.topics)


def _topics_count(request: MetadataRequest, call: Call, image: Image) -> int:
    return len(image.topics if _wants_everything(request, call) else request.topics or ())


def _missing(request: MetadataRequest, call: Call, image: Image, settings: LiveSettings) -> list[str]:
    """The named topics that do not exist and that this request may bring into being."""
    if not request.topics or not (call.version < 4 or request.allow_auto_topic_creation):
        return []
    if not settings.broker("auto.create.topics.enable"):
        return []
    names = (topic.name for topic in request.topics)
    return [name for name in names if name is not None and name not in image.topics and is_legal_name(name)]


async def _create_and_answer(
    missing: list[str],
    request: MetadataRequest,
    call: Call,
    feed: MetadataFeed,
    view: ClusterView,
    controller: ControllerClient,
) -> Answer:
    rights = Rights(request, call, feed.image)
    if creatable := await rights.creatable(missing):
        await auto_create(creatable, call, controller)
    return await _answer_in_slices(request, rights, call, feed, view)


def _answer(request: MetadataRequest, rights: Rights, call: Call, image: Image, view: ClusterView) -> Answer:
    if _wants_everything(request, call):
        listed = (topic for topic in image.topics.values() if rights.lists(topic.name))
        topics = [_found(topic, rights, image, call, view) for topic in listed]
    else:
        topics = [_asked(asked, rights, image, call, view) for asked in request.topics or ()]
    return _reply(request, topics, image, call, view)


async def _answer_in_slices(
    request: MetadataRequest, rights: Rights, call: Call, feed: MetadataFeed, view: ClusterView
) -> Answer:
    image = feed.image
    if _wants_everything(request, call):
        topics = [
            _counted(_found(topic, rights, image, call, view), call)
            async for topic in paced(image.topics.values(), call)
            if rights.lists(topic.name)
        ]
        return _reply(request, topics, image, call, view)
    try:
        topics = [
            _counted(_asked(asked, rights, image, call, view), call)
            async for asked in paced(request.topics or (), call)
        ]
    except AnswerTooLarge as error:
        call.forget_made()
        topics = [
            _absent(call, error.code, asked.name, asked.topic_id, NOT_ASKED)
            async for asked in paced(request.topics or (), call)
        ]
    return _reply(request, topics, image, call, view)


def _counted(line: bytes, call: Call) -> bytes:
    grow(call, len(line))
    return line


def _reply(request: MetadataRequest, topics: list[bytes], image: Image, call: Call, view: ClusterView) -> Answer:
    brokers = brokers_on(image, call.client.listener)
    head = MetadataHead(brokers, view.cluster_id, view.controller_id, _cluster_operations(request, call))
    throttle_ms = call.settle() if call.allowance is not None else 0
    return call.frame(response(call.version, head, topics, throttle_ms=throttle_ms))


def _cluster_operations(request: MetadataRequest, call: Call) -> int:
    if call.version not in CLUSTER_OPERATIONS or not request.include_cluster_authorized_operations:
        return NOT_ASKED
    return operations(call, Resource.CLUSTER, CLUSTER_NAME) if may_cluster(call, Operation.DESCRIBE) else 0


def _asked(asked: MetadataRequestTopic, rights: Rights, image: Image, call: Call, view: ClusterView) -> bytes:
    key = asked.name if asked.name is not None else asked.topic_id or NO_ID
    if (error := rights.refuse(key)) is not None:
        return _absent(call, error.code, asked.name, asked.topic_id if asked.name is None else None, NOT_ASKED)
    if asked.name is None:
        topic = image.topics_by_id.get(uuid.UUID(bytes=asked.topic_id or NO_ID))
        if topic is None:
            return _absent(call, Code.unknown_topic_id, None, asked.topic_id, NOT_ASKED)
        return _found(topic, rights, image, call, view)
    topic = image.topics.get(asked.name)
    if topic:
        return _found(topic, rights, image, call, view)
    code = Code.unknown_topic_or_partition if is_legal_name(asked.name) else Code.invalid_topic_exception
    return _absent(call, code, asked.name, None, rights.operations(asked.name))


def _found(topic: Topic, rights: Rights, image: Image, call: Call, view: ClusterView) -> bytes:
    return encode_topic(
        call.version,
        error_code=Code.none,
        name=topic.name,
        topic_id=topic.id.bytes,
        internal=topic.name in INTERNAL_TOPICS,
        partitions=view.partitions.encoded(image, topic, call.version, call.client.listener),
        operations=rights.operations(topic.name),
    )


def _absent(call: Call, code: Code, name: str | None, topic_id: bytes | None, operations: int) -> bytes:
    return encode_topic(
        call.version,
        error_code=code,
        name=name if call.version >= 12 else name or "",
        topic_id=topic_id or NO_ID,
        internal=False,
        partitions=NO_PARTITIONS[call.version >= 9],
        operations=operations,
    )
