"""KafkaTopic: its own events. The topics of a cluster are reconciled together."""

from typing import Any

import kopf

from ottla_operator.resources.kafka_topic import KafkaTopic
from ottla_operator.resources.model import GROUP, VERSION


@kopf.on.event(GROUP, VERSION, KafkaTopic.CRD.plural)
async def on_topic_event(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    topic = KafkaTopic.parse(dict(event["object"]))
    memo.reconcilers.topic_changed(topic, deleted=event["type"] == "DELETED")
