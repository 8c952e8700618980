"""KafkaTopic: its own events. The topics of a cluster are looked after together."""

from typing import Any

import kopf

from ottla_operator.resources.kafka_topic import KafkaTopic
from ottla_operator.resources.model import GROUP, VERSION
from ottla_operator.topics import cluster_key
from ottla_operator.workplace import Workplace


@kopf.on.event(GROUP, VERSION, KafkaTopic.CRD.plural)
async def topic_seen(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    work: Workplace = memo.work
    topic = KafkaTopic.parse(dict(event["object"]))
    key = cluster_key(topic)
    if event["type"] == "DELETED":
        work.topics.seen.get(key, {}).pop(topic.metadata.name, None)
    else:
        work.topics.seen.setdefault(key, {})[topic.metadata.name] = topic
    work.topic_queue.tell(key)
