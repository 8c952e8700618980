"""Watches the brokers for the active controller: heartbeats, session expiry, controlled shutdown."""

import asyncio
import contextlib
import logging
import math
from collections.abc import Set

import msgspec

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.brokers import check_broker_epoch
from ottla.metadata.decisions.commands import FenceBroker, UnfenceBroker
from ottla.metadata.decisions.sessions import Sessions
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Broker
from ottla.metadata.runtime.active import ActiveController
from ottla.metadata.runtime.feed import MetadataMachine
from ottla.system import System

__all__ = ["BrokerWatch", "Heartbeat", "HeartbeatReply"]

log = logging.getLogger("ottla.controller")

# The rest of a session after the broker's process seems to have ended; a heartbeat renews it.
SUSPICION_S = 0.3
NAP_S = 0.25
# After this time a data path that does not move is given as the reason.
STUCK_NOTED_S = 1.0


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """`version`: of the broker's image. `ready`: its logs are open, so it may lead.

    `pulse_age_ms`: time since its data loop last turned.
    """

    broker: int
    epoch: int
    version: int
    ready: bool
    wants_shutdown: bool = False
    pulse_age_ms: int = 0


class HeartbeatReply(msgspec.Struct, frozen=True, kw_only=True):
    fenced: bool
    caught_up: bool
    may_shut_down: bool = False


class BrokerWatch:
    """Idle on nodes that do not lead the quorum."""

    def __init__(
        self, *, controller: ActiveController, feed: MetadataMachine, system: System, session_timeout_s: float
    ) -> None:
        self._controller = controller
        self._feed = feed
        self._system = system
        self._sessions = Sessions(timeout_s=session_timeout_s, suspicion_s=SUSPICION_S)
        self._versions: dict[int, int] = {}
        self._leaving: dict[int, int] = {}  # in controlled shutdown → image version without leaders there
        self._gone: set[int] = set()  # nodes whose process ended and that were not heard since
        self._stuck: set[int] = set()  # brokers with heartbeats whose data path does not move
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        feed.on_leadership(self._leadership_changed)
        feed.subscribe(self._image_moved)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="broker-watch")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    @property
    def alive(self) -> Set[int]:
        return self._sessions.alive

    def version_of(self, broker: int) -> int:
        """The image version in the broker's last heartbeat; -1 before the first."""
        return self._versions.get(broker, -1)

    def process_gone(self, node_id: int) -> None:
        """Connections to that node are refused: its process has ended."""
        self._gone.add(node_id)
        self._sessions.suspect(node_id, self._system.clock.monotonic())
        self._wake.set()

    # -- heartbeats

    async def heartbeat(self, beat: Heartbeat) -> HeartbeatReply:
        """KafkaError: NOT_CONTROLLER; STALE_BROKER_EPOCH if the broker must register again."""
        self._controller.require_active()
        broker = check_broker_epoch(self._feed.image, beat.broker, beat.epoch)
        stuck = self._note_pulse(broker, beat.pulse_age_ms / 1000)
        self._versions[beat.broker] = beat.version
        caught_up = beat.version >= broker.epoch
        if beat.wants_shutdown:
            return await self._controlled_shutdown(broker)
        self._leaving.pop(broker.id, None)
        if not broker.is_active and beat.ready and caught_up and not stuck:
            await self._controller.submit(UnfenceBroker(broker.id, broker.epoch))
            log.info("broker %d is unfenced", broker.id)
        now = self._feed.image.brokers.get(broker.id, broker)
        return HeartbeatReply(fenced=now.fenced, caught_up=caught_up)

    def _note_pulse(self, broker: Broker, stuck_s: float) -> bool:
        """Whether the broker's data path is stuck. That time counts as silence, so its session expires.

        Heartbeats of a fenced broker that is stuck are ignored: it would count as alive until its session expires
        again.
        """
        stuck = self._sessions.is_stuck(stuck_s)
        if stuck_s >= STUCK_NOTED_S:
            self._stuck.add(broker.id)
        else:
            self._stuck.discard(broker.id)
        if not (stuck and broker.fenced):
            self._hear(broker.id, stuck_s=stuck_s)
        return stuck

    def _hear(self, broker: int, *, stuck_s: float = 0.0) -> None:
        self._gone.discard(broker)
        self._sessions.heard(broker, self._system.clock.monotonic(), stuck_s=stuck_s)
        self._wake.set()

    async def _controlled_shutdown(self, broker: Broker) -> HeartbeatReply:
        """Controlled shutdown: leaders move first; the broker may stop when all others have seen that."""
        if not broker.in_controlled_shutdown and not broker.fenced:
            await self._controller.submit(FenceBroker(broker.id, broker.epoch, in_controlled_shutdown=True))
        version = self._leaving.setdefault(broker.id, self._feed.image.version)
        may_go = broker.fenced or all(self.version_of(other) >= version for other in self._others(broker.id))
        if may_go:
            await self._controller.submit(FenceBroker(broker.id, broker.epoch))
            self._sessions.forget(broker.id)
            self._leaving.pop(broker.id, None)
            log.info("broker %d leads nothing and may stop", broker.id)
        return HeartbeatReply(fenced=may_go, caught_up=True, may_shut_down=may_go)

    def _others(self, broker_id: int) -> list[int]:
        return [b.id for b in self._feed.image.brokers.values() if b.is_active and b.id != broker_id]

    # -- session expiry

    def _leadership_changed(self, leads: bool) -> None:
        self._versions.clear()
        self._leaving.clear()
        self._stuck.clear()
        now = self._system.clock.monotonic()
        brokers = [broker.id for broker in self._feed.image.brokers.values() if not broker.fenced] if leads else []
        self._sessions.begin(brokers, now)
        for node_id in self._gone:
            self._sessions.suspect(node_id, now)
        self._wake.set()

    def _image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        """A broker that registers counts as heard; the session of an unregistered one is removed.

        Also on nodes that do not lead: otherwise a process that ended and returned before this node was elected would
        count as ended.
        """
        for broker_id in changes.brokers:
            before, after = old.brokers.get(broker_id), new.brokers.get(broker_id)
            has_registered = after is not None and (before is None or before.epoch != after.epoch)
            if has_registered:
                self._gone.discard(broker_id)
            if not self._controller.is_active:
                continue
            if after is None:
                self._sessions.forget(broker_id)
            elif has_registered:
                self._hear(broker_id)

    async def _run(self) -> None:
        while True:
            await self._sleep()
            for broker_id in self._sessions.expired(self._system.clock.monotonic()):
                await self._fence(broker_id)

    async def _sleep(self) -> None:
        """Sleep until a session expires, in short steps: a step that takes too long shows that this process was
        paused."""
        now, deadline = self._system.clock.monotonic(), self._sessions.deadline()
        nap = None if deadline == math.inf else min(max(deadline - now, 0), NAP_S)
        try:
            async with asyncio.timeout(nap):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()
        late = self._system.clock.monotonic() - now - NAP_S
        if nap is not None and late > NAP_S:
            self._sessions.extend(late)

    def _why(self, broker_id: int) -> str:
        if broker_id in self._gone:
            return "its process ended"
        return "its data path is stuck" if broker_id in self._stuck else "no heartbeat came in time"

    async def _fence(self, broker_id: int) -> None:
        broker = self._feed.image.brokers.get(broker_id)
        if broker is None or broker.fenced or not self._controller.is_active:
            return
        log.warning("broker %d is fenced: %s", broker_id, self._why(broker_id))
        try:
            await self._controller.submit(FenceBroker(broker.id, broker.epoch))
        except KafkaError as error:
            if error.code is not Code.not_controller:
                log.warning("broker %d could not be fenced; retrying: %s", broker_id, error)
                self._sessions.heard(broker_id, self._system.clock.monotonic())
