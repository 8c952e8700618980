"""KafkaCluster: its own events, and those of the StatefulSets that belong to one."""

from typing import Any

import kopf

from ottla_operator.reconciling import Key
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.labels import CLUSTER
from ottla_operator.resources.model import GROUP, VERSION
from ottla_operator.workplace import Workplace


@kopf.on.event(GROUP, VERSION, KafkaCluster.CRD.plural)
async def cluster_seen(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    work: Workplace = memo.work
    cluster = KafkaCluster.parse(dict(event["object"]))
    key = Key(cluster.metadata.namespace, cluster.metadata.name)
    if event["type"] == "DELETED":
        work.clusters.seen.pop(key, None)
    else:
        work.clusters.seen[key] = cluster
    work.cluster_queue.tell(key)
    work.topic_queue.tell(key)


@kopf.on.event("apps", "v1", "statefulsets", labels={CLUSTER: kopf.PRESENT})
async def set_seen(namespace: str | None, labels: kopf.Labels, memo: kopf.Memo, **_: Any) -> None:
    memo.work.cluster_queue.tell(Key(namespace or "", labels[CLUSTER]))
