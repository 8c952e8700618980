"""How Kopf is set up, and what exists while it runs."""

import os
from typing import Any

import kopf

from ottla_operator.reconcile.environment import Environment
from ottla_operator.reconcile.reconcilers import Reconcilers

EVENTS_GATHERED_SECONDS = 0.02
WATCH_SECONDS_MAX = 300


@kopf.on.startup()
async def on_startup(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False  # the operator chooses its events itself
    settings.queueing.batch_window = EVENTS_GATHERED_SECONDS
    settings.watching.server_timeout = WATCH_SECONDS_MAX
    memo.reconcilers = await Reconcilers.open(Environment.read(os.environ))


@kopf.on.cleanup()
async def on_cleanup(memo: kopf.Memo, **_: Any) -> None:
    await memo.reconcilers.close()
