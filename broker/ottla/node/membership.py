"""How a broker joins the fleet and leaves it.

register    the fleet knows of it; the metadata here has everything that was committed before
enter       it is unfenced: from now on it may lead
leave       it leads nothing any more
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from ottla.config import BrokerConfig
from ottla.errors import Code, KafkaError, Refusal
from ottla.handover import Pulse
from ottla.metadata.decisions.commands import FenceBroker, RegisterBroker, UnfenceBroker
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.active import Controller
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.metadata.runtime.watch import Heartbeat, HeartbeatReply
from ottla.system import System

__all__ = ["FleetMembership", "LoneMembership", "Membership"]

log = logging.getLogger("ottla")

REGISTER_AGAIN_SECONDS = 0.2
LEAVE_SECONDS_MAX = 10.0
# While it leaves, a broker asks this often, and gives up when nobody has answered for so long.
LEAVING_BEAT_SECONDS = 0.05
SILENCE_SECONDS_MAX = 2.0


class Membership(Protocol):
    epoch: int

    async def register(self) -> None: ...
    async def enter(self) -> None: ...
    async def leave(self) -> None: ...


class LoneMembership:
    """A fleet of one: nobody to tell that one is alive. Who unregisters it finds it registered again, as any broker
    that lives."""

    def __init__(self, registration: RegisterBroker, controller: Controller, *, feed: MetadataFeed) -> None:
        self.epoch = -1
        self._registration = registration
        self._controller = controller
        self._feed = feed
        self._again: asyncio.Task[None] | None = None
        self._is_member = False  # from its first entry until it leaves
        feed.subscribe(self._image_moved)

    async def register(self) -> None:
        self.epoch = await self._controller.submit(self._registration)

    async def enter(self) -> None:
        await self._controller.submit(UnfenceBroker(self._registration.id, self.epoch))
        self._is_member = True

    def _image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        id = self._registration.id
        if self._is_member and id in old.brokers and id not in new.brokers:
            log.warning("broker %d was unregistered; it is alive and registers again", id)
            if self._again is None or self._again.done():
                self._again = asyncio.create_task(self._come_back(), name="registration")

    async def _come_back(self) -> None:
        """Somebody may unregister it again before this returns, so the image decides when it is done."""
        while not self._feed.image.is_active(self._registration.id):
            try:
                await self.register()
                await self.enter()
            except KafkaError as error:
                log.warning("not registered again yet: %s", error)
                await asyncio.sleep(REGISTER_AGAIN_SECONDS)

    async def leave(self) -> None:
        self._is_member = False
        if self._again is not None:
            self._again.cancel()
        if self.epoch < 0:
            return
        try:
            await self._controller.submit(FenceBroker(self._registration.id, self.epoch, in_controlled_shutdown=True))
        except KafkaError as error:
            log.warning("left without telling the controller: %s", error)


class HeartbeatController(Controller, Protocol):
    async def heartbeat(self, beat: Heartbeat, *, seconds: float) -> HeartbeatReply: ...


class FleetMembership:
    """Heartbeats from registration to the end, with the data loop's pulse and the metadata that it has seen."""

    def __init__(
        self,
        registration: RegisterBroker,
        controller: HeartbeatController,
        *,
        feed: MetadataFeed,
        pulse: Pulse,
        config: BrokerConfig,
        system: System,
        on_failure: Callable[[Refusal], None],
    ) -> None:
        self.epoch = -1
        self._registration = registration
        self._controller = controller
        self._pulse = pulse
        self._system = system
        self._on_failure = on_failure
        self._register_seconds_max = config["initial.broker.registration.timeout.ms"] / 1000
        self._interval_s = config["broker.heartbeat.interval.ms"] / 1000
        self._patience_s = config["broker.session.timeout.ms"] / 2000
        self._hands_over = config["controlled.shutdown.enable"]
        self._ready = False
        self._wake = asyncio.Event()
        self._entered = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._trouble = ""
        feed.subscribe(self._image_moved)

    async def register(self) -> None:
        await self._register()
        self._task = asyncio.create_task(self._beat(), name="heartbeats")
        self._task.add_done_callback(self._ended)

    async def enter(self) -> None:
        self._ready = True
        self._wake.set()
        await self._entered.wait()

    async def leave(self) -> None:
        """Leaders move first. Bounded: what cannot be handed over in time is left to the end of the session."""
        if self._task is not None:
            self._task.cancel()
        if not self._hands_over or self.epoch < 0:
            return
        now = self._system.clock.monotonic
        begun = heard = now()
        while now() < min(begun + LEAVE_SECONDS_MAX, heard + SILENCE_SECONDS_MAX):
            try:
                reply = await self._controller.heartbeat(self._heartbeat(leaving=True), seconds=SILENCE_SECONDS_MAX)
            except KafkaError as error:
                self._note(f"cannot hand over: {error}")
            else:
                heard = now()
                if reply.may_shut_down:
                    return
            await asyncio.sleep(LEAVING_BEAT_SECONDS)
        log.warning("left without handing over; others notice that the session ends")

    # -- registration

    async def _register(self) -> None:
        """Refusal when it cannot be done; an earlier life with our id must end first."""
        give_up_at = self._system.clock.monotonic() + self._register_seconds_max
        while True:
            try:
                self.epoch = await self._controller.submit(self._registration)
                self._note("")
                return
            except KafkaError as error:
                waiting = error.code in (Code.duplicate_broker_registration, Code.request_timed_out)
                if not waiting or self._system.clock.monotonic() >= give_up_at:
                    raise Refusal(f"the controller does not register this broker: {error}") from error
                self._note(f"not registered yet: {error}")
            await asyncio.sleep(REGISTER_AGAIN_SECONDS)

    def _image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        own = new.brokers.get(self._registration.id)
        if own is not None and own.epoch == self.epoch and own.is_active:
            self._entered.set()

    # -- heartbeats

    async def _beat(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._controller.heartbeat(self._heartbeat(leaving=False), seconds=self._patience_s)
                self._note("")
            except KafkaError as error:
                await self._failed(error)
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _failed(self, error: KafkaError) -> None:
        if error.code is Code.stale_broker_epoch:
            log.warning("the controller does not know this broker any more (%s); it registers again", error)
            await self._register()
        else:
            self._note(f"no heartbeat: {error}")

    def _heartbeat(self, *, leaving: bool) -> Heartbeat:
        return Heartbeat(
            broker=self._registration.id,
            epoch=self.epoch,
            version=self._pulse.version,
            ready=self._ready,
            wants_shutdown=leaving,
            pulse_age_ms=round(self._pulse.age_s() * 1000),
        )

    def _note(self, trouble: str) -> None:
        """A line when something changed, not one per attempt."""
        if trouble and trouble != self._trouble:
            log.warning("%s", trouble)
        elif self._trouble and not trouble:
            log.info("the controller answers again")
        self._trouble = trouble

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error if isinstance(error, Refusal) else Refusal(f"heartbeats ended: {error!r}"))
