"""CreatePartitions: grow a topic (KIP-195). v2 flexible."""

from collections import Counter

from ottla.api.authorizing import permitted, topic_access
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.mutation_quota import OVER_QUOTA, within_quota
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import CreatePartitions, NewPartitions, Outcome
from ottla.metadata.decisions.topics import check_once
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation


@api(key=37, versions=(0, 3), elements_max=MANY_ELEMENTS_MAX)
async def create_partitions(
    request: CreatePartitionsRequest, call: Call, controller: ControllerClient, feed: MetadataFeed
) -> Answer:
    times = Counter(topic.name for topic in request.topics)
    access = topic_access(call, Operation.ALTER)
    allowed, denied = await permitted(
        [_new(topic) for topic in request.topics],
        call,
        denied=lambda new: None if access is None else access.refused(new.topic),
        check=lambda new: check_once(new.topic, times),
        value=lambda new: new.topic,
    )
    topics, refused = within_quota(allowed, lambda topic: _growth(topic, feed.image), call, strict_since=3)
    command = CreatePartitions(topics, validate_only=request.validate_only)
    try:
        outcomes = await controller.submit(command)
    except KafkaError as error:
        outcomes = [Outcome(topic.topic, error.code, error.message) for topic in topics]
    outcomes += [Outcome(topic.topic, *OVER_QUOTA) for topic in refused]
    outcomes += denied
    return call.reply(
        results=[
            {"name": outcome.value, "error_code": outcome.code, "error_message": outcome.message}
            for outcome in outcomes
        ]
    )


def _growth(topic: NewPartitions, image: Image) -> int:
    known = image.topics.get(topic.topic)
    return max(topic.count - len(known.partitions), 0) if known is not None else 0


def _new(topic: CreatePartitionsTopic) -> NewPartitions:
    assignments = None if topic.assignments is None else [tuple(line.broker_ids) for line in topic.assignments]
    return NewPartitions(topic.name, topic.count, assignments)
