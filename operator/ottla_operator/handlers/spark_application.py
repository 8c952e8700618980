"""SparkApplication: its own events, and those of its driver's and executors' pods."""

from typing import Any

import kopf

from ottla_operator.reconciling import Key
from ottla_operator.resources.labels import APPLICATION
from ottla_operator.resources.model import GROUP, VERSION
from ottla_operator.resources.spark_application import SparkApplication


@kopf.on.event(GROUP, VERSION, SparkApplication.CRD.plural)
async def application_seen(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    metadata = event["object"]["metadata"]
    memo.work.application_queue.tell(Key(metadata["namespace"], metadata["name"]))


@kopf.on.event("pods", labels={APPLICATION: kopf.PRESENT})
async def pod_seen(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    metadata = event["object"]["metadata"]
    memo.work.application_queue.tell(Key(metadata["namespace"], metadata["labels"][APPLICATION]))
