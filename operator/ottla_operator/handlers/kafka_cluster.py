"""KafkaCluster: its own events, and those of its StatefulSets."""

from typing import Any

import kopf

from ottla_operator.reconcile.queue import Key
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.labels import CLUSTER
from ottla_operator.resources.model import GROUP, VERSION


@kopf.on.event(GROUP, VERSION, KafkaCluster.CRD.plural)
async def on_cluster_event(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    cluster = KafkaCluster.parse(dict(event["object"]))
    memo.reconcilers.cluster_changed(cluster, deleted=event["type"] == "DELETED")


@kopf.on.event("apps", "v1", "statefulsets", labels={CLUSTER: kopf.PRESENT})
async def on_set_event(namespace: str | None, labels: kopf.Labels, memo: kopf.Memo, **_: Any) -> None:
    memo.reconcilers.cluster_parts_changed(Key(namespace or "", labels[CLUSTER]))
