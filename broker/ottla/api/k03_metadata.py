"""Metadata: the brokers, and topics with their partitions and leaders; unknown topics are made where that is allowed.

v1 all topics is null · v4 allow_auto_topic_creation · v5 offline replicas · v7 leader epochs · v8 authorized
operations · v9 flexible · v10 topic ids · v12 topics by id · v13 top-level error (KIP-1102).
"""

import uuid
from collections.abc import Awaitable

from ottla.api.call import Answer, Call
from ottla.api.cluster_view import ClusterView, brokers_on
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import MetadataRequest, MetadataRequestTopic
from ottla.api.slices import AnswerTooLarge, grow, paced
from ottla.api.topic_making import auto_create, is_legal_name
from ottla.errors import Code
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Topic
from ottla.metadata.model.topic_names import INTERNAL_TOPICS
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.settings import LiveSettings
from ottla.wire.metadata_response import MetadataHead, encode_topic, response

NO_ID = bytes(16)
TOPICS_AT_ONCE_MAX = 200
NO_PARTITIONS = {True: b"\1", False: b"\0\0\0\0"}


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
    if _topics_count(request, call, image) > TOPICS_AT_ONCE_MAX:
        return _answer_in_slices(request, call, feed, view)
    return _answer(request, call, image, view)


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
    await auto_create(missing, call, controller)
    return await _answer_in_slices(request, call, feed, view)


def _answer(request: MetadataRequest, call: Call, image: Image, view: ClusterView) -> Answer:
    if _wants_everything(request, call):
        topics = [_found(topic, image, call, view) for topic in image.topics.values()]
    else:
        topics = [_asked(asked, image, call, view) for asked in request.topics or ()]
    return _reply(topics, image, call, view)


async def _answer_in_slices(request: MetadataRequest, call: Call, feed: MetadataFeed, view: ClusterView) -> Answer:
    image = feed.image
    if _wants_everything(request, call):
        topics = [
            _counted(_found(topic, image, call, view), call) async for topic in paced(image.topics.values(), call)
        ]
        return _reply(topics, image, call, view)
    try:
        topics = [_counted(_asked(asked, image, call, view), call) async for asked in paced(request.topics or (), call)]
    except AnswerTooLarge as error:
        call.forget_made()
        topics = [
            _absent(call, error.code, asked.name, asked.topic_id) async for asked in paced(request.topics or (), call)
        ]
    return _reply(topics, image, call, view)


def _counted(line: bytes, call: Call) -> bytes:
    grow(call, len(line))
    return line


def _reply(topics: list[bytes], image: Image, call: Call, view: ClusterView) -> Answer:
    head = MetadataHead(brokers_on(image, call.client.listener), view.cluster_id, view.controller_id)
    throttle_ms = call.settle() if call.allowance is not None else 0
    return call.frame(response(call.version, head, topics, throttle_ms=throttle_ms))


def _asked(asked: MetadataRequestTopic, image: Image, call: Call, view: ClusterView) -> bytes:
    if asked.name is None:
        topic = image.topics_by_id.get(uuid.UUID(bytes=asked.topic_id or NO_ID))
        return _found(topic, image, call, view) if topic else _absent(call, Code.unknown_topic_id, None, asked.topic_id)
    topic = image.topics.get(asked.name)
    if topic:
        return _found(topic, image, call, view)
    code = Code.unknown_topic_or_partition if is_legal_name(asked.name) else Code.invalid_topic_exception
    return _absent(call, code, asked.name, None)


def _found(topic: Topic, image: Image, call: Call, view: ClusterView) -> bytes:
    return encode_topic(
        call.version,
        error_code=Code.none,
        name=topic.name,
        topic_id=topic.id.bytes,
        internal=topic.name in INTERNAL_TOPICS,
        partitions=view.partitions.encoded(image, topic, call.version, call.client.listener),
    )


def _absent(call: Call, code: Code, name: str | None, topic_id: bytes | None) -> bytes:
    return encode_topic(
        call.version,
        error_code=code,
        name=name if call.version >= 12 else name or "",
        topic_id=topic_id or NO_ID,
        internal=False,
        partitions=NO_PARTITIONS[call.version >= 9],
    )
