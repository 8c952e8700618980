"""DeleteTopics. v4 flexible · v5 error messages · v6 by id (KIP-516)."""

import uuid
from collections import Counter

from ottla.api.authorizing import TopicAccess, permitted, refusal, sees
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.mutation_quota import OVER_QUOTA, within_quota
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import DeleteTopicsRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import DeleteTopics, Outcome, TopicRef
from ottla.metadata.decisions.topics import check_ref
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Topic
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource

NO_ID = uuid.UUID(int=0)


@api(key=20, versions=(1, 6), elements_max=MANY_ELEMENTS_MAX)
async def delete_topics(
    request: DeleteTopicsRequest, call: Call, controller: ControllerClient, feed: MetadataFeed
) -> Answer:
    refs = _refs(request, call)
    outcomes: list[Outcome[TopicRef]] = []
    try:
        rights = await _rights(refs, call, controller, feed)
        times = Counter(refs)
        refs, outcomes = await permitted(
            refs,
            call,
            denied=rights.denied,
            check=lambda ref: check_ref(ref, times),
            value=lambda ref: ref if times[ref] > 1 else rights.shown(ref),
        )
        refs, over = within_quota(refs, lambda ref: _partitions(ref, feed.image), call, strict_since=5)
        outcomes += [Outcome(ref, *OVER_QUOTA) for ref in over]
        deleted = await controller.submit(DeleteTopics(refs))
    except KafkaError as error:
        outcomes += [Outcome(ref, _known_code(error.code, call.version), error.message) for ref in refs]
        return _reply(outcomes, call)
    return _reply(outcomes + deleted, call)


class _Rights:
    """Of one request. Refusals do not tell whether a topic exists to those who may not know it."""

    def __init__(self, call: Call, image: Image, *, may_all: bool) -> None:
        self._call = call
        self._image = image
        self._may_all = may_all
        self._describable = TopicAccess(call, Operation.DESCRIBE, image)
        self._deletable = TopicAccess(call, Operation.DELETE, image)

    def denied(self, ref: TopicRef) -> KafkaError | None:
        """Why the controller must not get it. It may have made a topic that this image does not have yet: DELETE is
        asked of names without a topic, too, and an id without a name goes nowhere."""
        if self._may_all:
            return None
        topic = _find(ref, self._image)
        name = ref.name if topic is None else topic.name
        if name is None:
            return KafkaError(Code.unknown_topic_id)
        if ref.name is not None and self._describable.refused(name) is not None:
            return refusal(Operation.DELETE, Resource.TOPIC, name)
        if self._deletable.refused(name) is None:
            return None
        if topic is None:
            return KafkaError(Code.unknown_topic_or_partition)
        return refusal(Operation.DELETE, Resource.TOPIC, self.shown(ref).name or str(ref.id))

    def shown(self, ref: TopicRef) -> TopicRef:
        """What an answer names when this was refused."""
        topic = _find(ref, self._image) if ref.name is None else None
        if topic is None or not sees(self._call, Operation.DESCRIBE, Resource.TOPIC, topic.name):
            return ref
        return TopicRef(topic.name, ref.id)


async def _rights(refs: list[TopicRef], call: Call, controller: ControllerClient, feed: MetadataFeed) -> _Rights:
    """By the image, in which ids have their names. Another broker may just have told the client an id: what the
    controller has is waited for."""
    may_all = sees(call, Operation.DELETE, Resource.CLUSTER, CLUSTER_NAME)
    if not may_all and any(ref.name is None and _find(ref, feed.image) is None for ref in refs):
        await controller.submit(DeleteTopics([]))
    return _Rights(call, feed.image, may_all=may_all)


def _find(ref: TopicRef, image: Image) -> Topic | None:
    return image.topics.get(ref.name) if ref.name is not None else image.topics_by_id.get(ref.id)


def _known_code(code: Code, version: int) -> Code:
    """As Kafka: clients before v3 do not know that deletion can be disabled."""
    return Code.invalid_request if code is Code.topic_deletion_disabled and version < 3 else code


def _partitions(ref: TopicRef, image: Image) -> int:
    topic = _find(ref, image)
    return len(topic.partitions) if topic is not None else 0


def _refs(request: DeleteTopicsRequest, call: Call) -> list[TopicRef]:
    if call.version < 6:
        return [TopicRef(name=name) for name in request.topic_names]
    return [TopicRef(name=t.name, id=uuid.UUID(bytes=t.topic_id) if t.topic_id else NO_ID) for t in request.topics]


def _reply(outcomes: list[Outcome[TopicRef]], call: Call) -> Answer:
    return call.reply(
        responses=[
            {
                "name": outcome.value.name if call.version >= 6 else outcome.value.name or "",
                "topic_id": outcome.value.id,
                "error_code": outcome.code,
                "error_message": outcome.message,
            }
            for outcome in outcomes
        ]
    )
