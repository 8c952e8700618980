"""CreatePartitions: grow a topic (KIP-195). v2 flexible."""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.topic_making import submit
from ottla.errors import KafkaError
from ottla.metadata.commands import CreatePartitions, NewPartitions, Outcome


@api(key=37, versions=(0, 3))
async def create_partitions(request: Any, call: Call) -> Answer:
    command = CreatePartitions([_new(topic) for topic in request.topics], validate_only=request.validate_only)
    try:
        outcomes = await submit(command, call)
    except KafkaError as error:
        outcomes = [Outcome(topic.name, error.code, error.message) for topic in request.topics]
    return call.reply(
        results=[
            {"name": outcome.value, "error_code": outcome.code, "error_message": outcome.message}
            for outcome in outcomes
        ]
    )


def _new(topic: Any) -> NewPartitions:
    assignments = None if topic.assignments is None else [tuple(line.broker_ids) for line in topic.assignments]
    return NewPartitions(topic.name, topic.count, assignments)
