"""CreateTopics.

v2-3 validate only · v4 broker defaults for counts (KIP-464) · v5 flexible, answers with what was made (KIP-525) ·
v7 topic ids.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from ottla.api.authorizing import permitted, sees, topic_access
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.mutation_quota import OVER_QUOTA, within_quota
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import CreateTopicsCreatableTopic, CreateTopicsRequest
from ottla.api.slices import encoded, paced
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import CreatedTopic, CreateTopics, NewTopic, Outcome
from ottla.metadata.decisions.topics import check_new_name
from ottla.replica.settings import LiveSettings
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource


@api(key=19, versions=(2, 7), elements_max=MANY_ELEMENTS_MAX)
async def create_topics(
    request: CreateTopicsRequest, call: Call, controller: ControllerClient, settings: LiveSettings
) -> Answer:
    times = Counter(topic.name for topic in request.topics)
    may_all = sees(call, Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME)
    access = None if may_all else topic_access(call, Operation.CREATE)
    allowed, denied = await permitted(
        [_new(topic) for topic in request.topics],
        call,
        denied=lambda topic: None if access is None else access.refused(topic.name),
        check=lambda topic: check_new_name(topic.name, times),
        value=lambda topic: CreatedTopic(topic.name),
    )
    topics, refused = within_quota(allowed, _cost(settings), call, strict_since=6)
    command = CreateTopics(topics, validate_only=request.validate_only)
    try:
        outcomes = await controller.submit(command)
    except KafkaError as error:
        outcomes = [Outcome(CreatedTopic(topic.name), error.code, error.message) for topic in topics]
    outcomes += [Outcome(CreatedTopic(topic.name), *OVER_QUOTA) for topic in refused]
    outcomes += denied
    configs = {topic.name: _set(topic) for topic in request.topics}
    # In slices, however small the request: each topic is answered with dozens of settings.
    lines = (
        _line(outcome, configs.get(outcome.value.name, {}), call, settings) async for outcome in paced(outcomes, call)
    )
    return call.reply(topics=await encoded(call, ("topics",), lines))


def _cost(settings: LiveSettings) -> Callable[[NewTopic], int]:
    def partitions(topic: NewTopic) -> int:
        asked = len(topic.assignments) if topic.assignments else topic.partitions
        return asked if asked > 0 else int(settings.broker("num.partitions"))

    return partitions


def _new(topic: CreateTopicsCreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(line.partition_index, tuple(line.broker_ids)) for line in topic.assignments],
        configs=[(config.name, config.value) for config in topic.configs],
    )


def _set(topic: CreateTopicsCreatableTopic) -> dict[str, str]:
    """A topic with a null is refused."""
    return {config.name: config.value for config in topic.configs if config.value is not None}


def _line(
    outcome: Outcome[CreatedTopic], configs: dict[str, str], call: Call, settings: LiveSettings
) -> dict[str, Any]:
    topic = outcome.value
    shown = not outcome.ok or sees(call, Operation.DESCRIBE_CONFIGS, Resource.TOPIC, topic.name)
    described = settings.describe_topic(topic.name, configs) if outcome.ok and shown and call.version >= 5 else []
    return {
        "name": topic.name,
        "topic_id": topic.id,
        "error_code": outcome.code,
        "error_message": outcome.message,
        "topic_config_error_code": Code.none if shown else Code.topic_authorization_failed,
        "num_partitions": topic.partitions if shown else -1,
        "replication_factor": topic.replication_factor if shown else -1,
        "configs": [
            {
                "name": entry.name,
                "value": entry.value,
                "read_only": entry.read_only,
                "config_source": entry.source,
                "is_sensitive": entry.sensitive,
            }
            for entry in described
        ]
        if outcome.ok
        else None,
    }
