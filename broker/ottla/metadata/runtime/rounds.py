"""Runs the active controller's duties, each at its interval, while this node leads the quorum."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from ottla.errors import KafkaError
from ottla.metadata.decisions.duties import PERIODIC, Duty
from ottla.metadata.runtime.active import ActiveController

__all__ = ["Rounds"]

log = logging.getLogger("ottla.controller")

PAUSE_SECONDS_MIN = 0.1


class Rounds:
    """`setting` returns the current value of a broker setting."""

    def __init__(self, controller: ActiveController, setting: Callable[[str], Any]) -> None:
        self._controller = controller
        self._setting = setting
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._go(duty), name=duty.name) for duty in PERIODIC]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _go(self, duty: Duty) -> None:
        while True:
            await asyncio.sleep(max(duty.seconds(self._setting), PAUSE_SECONDS_MIN))
            if self._controller.is_active:
                try:
                    await self._do(duty)
                except KafkaError as error:
                    log.warning("%s: %s", duty.name, error)
                except Exception:
                    log.exception("%s failed; retrying in the next round", duty.name)

    async def _do(self, duty: Duty) -> None:
        command = duty.due(self._controller.require_active(), self._controller.context(), self._setting)
        if command is not None:
            await self._controller.submit(command)
