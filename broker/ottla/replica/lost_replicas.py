"""Reports replicas in failed log dirs to the controller, until the image has them as lost too.

The controller elects other leaders for them; the broker stays up with its other log dirs.
"""

import asyncio
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Protocol

from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import ReplicasLost
from ottla.metadata.model.image import Image
from ottla.replica.isr_changes import Controller

__all__ = ["LostReplicas"]

log = logging.getLogger("ottla.replica")

REPORTED_AT_ONCE = 1_000
PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 1.0

Replica = tuple[uuid.UUID, int]


class LostReplicaHost(Protocol):
    node_id: int

    @property
    def image(self) -> Image: ...
    @property
    def offline(self) -> Mapping[tuple[str, int], uuid.UUID]:
        """The lost partitions by name, with their topics' ids."""


class LostReplicas:
    def __init__(self, host: LostReplicaHost, *, controller: Controller) -> None:
        self._host = host
        self._controller = controller
        self._awake = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())
        self.check()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    def check(self) -> None:
        """Called after a log dir failed, and for every image: this broker may have registered again."""
        if self._host.offline and self._unreported():
            self._awake.set()

    def _unreported(self) -> list[Replica]:
        """Lost replicas that the image does not have as lost yet."""
        image, node_id = self._host.image, self._host.node_id
        if node_id not in image.brokers:
            return []
        states = ((topic_id, image.partition(*key)) for key, topic_id in self._host.offline.items())
        believed = ((topic_id, s) for topic_id, s in states if s and node_id in s.replicas and node_id not in s.lost)
        return [(topic_id, state.index) for topic_id, state in believed]

    async def _run(self) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            pause = PAUSE_S_MIN
            while unreported := self._unreported():
                await self._report(unreported[:REPORTED_AT_ONCE])
                await asyncio.sleep(pause)
                pause = min(pause * 2, PAUSE_S_MAX)

    async def _report(self, lost: Sequence[Replica]) -> None:
        node_id = self._host.node_id
        try:
            await self._controller.submit(ReplicasLost(node_id, self._host.image.brokers[node_id].epoch, lost))
            log.warning("the controller knows that %d replicas are lost with their log dir", len(lost))
        except KafkaError as error:
            log.warning("the controller does not know yet that %d replicas are lost: %s", len(lost), error)
        except Exception:
            log.exception("reporting lost replicas to the controller failed; retrying")
