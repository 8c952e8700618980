"""DeleteTopics. v4 flexible · v5 error messages · v6 by id (KIP-516)."""

import uuid
from collections import Counter
from collections.abc import Sequence

from ottla.api.authorizing import may, refusal, sees
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.mutation_quota import OVER_QUOTA, within_quota
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import DeleteTopicsRequest
from ottla.api.slices import paced
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import DeleteTopics, Outcome, TopicRef
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource

NO_ID = uuid.UUID(int=0)


@api(key=20, versions=(1, 6), elements_max=MANY_ELEMENTS_MAX)
async def delete_topics(
    request: DeleteTopicsRequest, call: Call, controller: ControllerClient, feed: MetadataFeed
) -> Answer:
    allowed, denied = await _by_right(_refs(request, call), call, feed.image)
    refs, refused = within_quota(allowed, lambda ref: _partitions(ref, feed.image), call, strict_since=5)
    over = [*denied, *(Outcome(ref, *OVER_QUOTA) for ref in refused)]
    try:
        return _reply(await controller.submit(DeleteTopics(refs)) + over, call)
    except KafkaError as error:
        return _reply([Outcome(ref, _known_code(error.code, call.version), error.message) for ref in refs] + over, call)


async def _by_right(
    refs: Sequence[TopicRef], call: Call, image: Image
) -> tuple[list[TopicRef], list[Outcome[TopicRef]]]:
    """Those that the client may delete, and refusals that do not tell whether a topic exists. What is named twice is
    for the controller to refuse, and so is what does not exist, to those who may know that."""
    if sees(call, Operation.DELETE, Resource.CLUSTER, CLUSTER_NAME):
        return list(refs), []
    times = Counter((ref.name, ref.id) for ref in refs)
    allowed: list[TopicRef] = []
    denied: list[Outcome[TopicRef]] = []
    async for ref in paced(refs, call):
        outcome = None if times[ref.name, ref.id] > 1 else _denied(ref, call, image)
        if outcome is None:
            allowed.append(ref)
        else:
            denied.append(outcome)
    return allowed, denied


def _denied(ref: TopicRef, call: Call, image: Image) -> Outcome[TopicRef] | None:
    topic = image.topics.get(ref.name) if ref.name is not None else image.topics_by_id.get(ref.id)
    name = ref.name if topic is None else topic.name
    if name is None:
        return None
    by_name = ref.name is not None
    is_hidden = by_name and not may(call, Operation.DESCRIBE, Resource.TOPIC, name)
    if not is_hidden and (topic is None or may(call, Operation.DELETE, Resource.TOPIC, name)):
        return None
    shown = name if by_name or sees(call, Operation.DESCRIBE, Resource.TOPIC, name) else None
    error = refusal(Operation.DELETE, Resource.TOPIC, shown or str(ref.id))
    return Outcome(TopicRef(shown, ref.id), error.code, error.message)


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
