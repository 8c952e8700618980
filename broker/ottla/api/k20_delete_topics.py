"""DeleteTopics. v4 flexible · v5 error messages · v6 by id (KIP-516)."""

import uuid

from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.mutation_quota import OVER_QUOTA, within_quota
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import DeleteTopicsRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import DeleteTopics, Outcome, TopicRef
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed

NO_ID = uuid.UUID(int=0)


@api(key=20, versions=(1, 6), elements_max=MANY_ELEMENTS_MAX)
async def delete_topics(
    request: DeleteTopicsRequest, call: Call, controller: ControllerClient, feed: MetadataFeed
) -> Answer:
    refs = _refs(request, call)
    refs, refused = within_quota(refs, lambda ref: _partitions(ref, feed.image), call, strict_since=5)
    over = [Outcome(ref, *OVER_QUOTA) for ref in refused]
    try:
        return _reply(await controller.submit(DeleteTopics(refs)) + over, call)
    except KafkaError as error:
        return _reply([Outcome(ref, _known_code(error.code, call.version), error.message) for ref in refs] + over, call)


def _known_code(code: Code, version: int) -> Code:
    """As Kafka: clients before v3 do not know that deletion can be disabled."""
    return Code.invalid_request if code is Code.topic_deletion_disabled and version < 3 else code


def _partitions(ref: TopicRef, image: Image) -> int:
    topic = image.topics.get(ref.name) if ref.name is not None else image.topics_by_id.get(ref.id)
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
