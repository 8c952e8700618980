"""SparkApplication: its own events, and those of its driver's and executors' pods."""

from typing import Any

import kopf

from ottla_operator.reconcile.queue import Key
from ottla_operator.resources.labels import APPLICATION
from ottla_operator.resources.model import GROUP, VERSION
from ottla_operator.resources.spark_application import SparkApplication


@kopf.on.event(GROUP, VERSION, SparkApplication.CRD.plural)
async def on_application_event(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    metadata = event["object"]["metadata"]
    memo.reconcilers.application_changed(Key(metadata["namespace"], metadata["name"]))


@kopf.on.event("pods", labels={APPLICATION: kopf.PRESENT})
async def on_pod_event(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    metadata = event["object"]["metadata"]
    memo.reconcilers.application_changed(Key(metadata["namespace"], metadata["labels"][APPLICATION]))
