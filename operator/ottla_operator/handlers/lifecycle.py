"""How Kopf is set up, and what exists while it runs."""

import os
from typing import Any

import kopf

from ottla_operator.environment import Environment
from ottla_operator.workplace import Workplace

EVENTS_GATHERED_SECONDS = 0.02
WATCH_SECONDS_MAX = 300


@kopf.on.startup()
async def begin(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False  # events are ours to choose
    settings.queueing.batch_window = EVENTS_GATHERED_SECONDS
    settings.watching.server_timeout = WATCH_SECONDS_MAX
    memo.work = await Workplace.open(Environment.read(os.environ))


@kopf.on.cleanup()
async def end(memo: kopf.Memo, **_: Any) -> None:
    await memo.work.close()
