"""Images on their way to the data loop, one lane after the other on a loop that the test turns."""

import asyncio
import contextlib
import gc
import uuid
import weakref
from collections import deque
from collections.abc import Callable

import pytest
from ottla.errors import Code, KafkaError
from ottla.handover import Handover
from ottla.metadata.decisions.commands import FenceBroker
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import broker_record
from ottla.metadata.model.state import Broker
from ottla.metadata.runtime import relay as relay_module
from ottla.metadata.runtime.feed import MetadataFeed, MetadataMachine
from ottla.metadata.runtime.relay import ControllerLink, FeedRelay
from ottla.system import RealClock

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


class HeldLane:
    """Runs nothing before the test says so."""

    def __init__(self) -> None:
        self.posted: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()

    def post(self, callback: Callable[..., object], *arguments: object) -> None:
        self.posted.append((callback, arguments))

    def is_here(self) -> bool:
        return True

    def run(self) -> None:
        while self.posted:
            callback, arguments = self.posted.popleft()
            callback(*arguments)


class Relayed:
    def __init__(self) -> None:
        self.control, self.data = HeldLane(), HeldLane()
        self.handover = Handover(control=self.control, data=self.data, clock=RealClock())
        self.machine, self.feed = MetadataMachine(CLUSTER), MetadataFeed(CLUSTER)
        self.relay = FeedRelay(self.handover, machine=self.machine, feed=self.feed)
        self.heard: list[tuple[int, int, set[int]]] = []
        self.feed.subscribe(self._moved)

    def _moved(self, old: Image, new: Image, changes: Changes) -> None:
        self.heard.append((old.version, new.version, set(changes.brokers)))

    def move(self, *brokers: int) -> None:
        """One version on, with these brokers registered again."""
        version = self.machine.image.version + 1
        records = [broker_record(Broker(each, version, uuid.uuid4())) for each in brokers]
        self.machine.publish(*self.machine.image.apply(records, version=version, epoch=1))


def test_every_image_arrives_in_order_also_one_without_changes():
    relayed = Relayed()
    relayed.move(1)
    relayed.move()
    relayed.move(2)
    assert relayed.feed.image.version == 0
    relayed.data.run()
    assert relayed.heard == [(0, 1, {1}), (2, 3, {2})]
    assert relayed.feed.image is relayed.machine.image
    assert relayed.handover.pulse.version == 3


def test_a_data_loop_that_is_far_behind_gets_the_newest_image_and_all_that_changed(monkeypatch):
    monkeypatch.setattr(relay_module, "IMAGES_UNDER_WAY_MAX", 2)
    relayed = Relayed()
    for broker in range(1, 7):
        relayed.move(broker)
    assert len(relayed.data.posted) == 2
    relayed.data.run()
    relayed.move(7)  # still behind: in order, not before what was held back
    assert not relayed.data.posted
    relayed.control.run()
    relayed.data.run()
    assert relayed.heard == [(0, 1, {1}), (1, 2, {2}), (2, 7, {3, 4, 5, 6, 7})]
    relayed.control.run()
    relayed.move(8)
    relayed.data.run()
    assert relayed.heard[-1] == (7, 8, {8})


@pytest.mark.parametrize("refused", [False, True])
def test_a_command_is_answered_when_the_data_loop_has_seen_what_follows(refused):
    relayed = Relayed()

    class Far:
        async def submit(self, command: object) -> str:
            relayed.move(1)
            if refused:
                raise KafkaError(Code.invalid_request, "no")
            return "done"

    async def scene() -> None:
        link = ControllerLink(relayed.handover, far=Far(), machine=relayed.machine, feed=relayed.feed)  # type: ignore[arg-type]
        asked = asyncio.ensure_future(link.submit(FenceBroker(1, 1)))
        await asyncio.sleep(0)
        relayed.control.run()
        for _ in range(5):
            await asyncio.sleep(0)
        image_posted = relayed.data.posted.popleft()
        relayed.data.run()  # the answer alone
        for _ in range(5):
            await asyncio.sleep(0)
        assert not asked.done()
        relayed.data.posted.append(image_posted)
        relayed.data.run()
        if refused:
            with pytest.raises(KafkaError, match="no"):
                await asked
        else:
            assert await asked == "done"

    asyncio.run(scene())


def test_a_command_that_is_refused_needs_no_collector():
    """What decided it held the image of the fleet."""
    relayed = Relayed()
    errors: list[weakref.ref[KafkaError]] = []

    class Far:
        async def submit(self, command: object) -> str:
            error = KafkaError(Code.invalid_request, "no")
            errors.append(weakref.ref(error))
            try:
                raise error
            finally:
                del error

    async def scene() -> None:
        link = ControllerLink(relayed.handover, far=Far(), machine=relayed.machine, feed=relayed.feed)  # type: ignore[arg-type]

        async def asked() -> None:
            with contextlib.suppress(KafkaError):
                await link.submit(FenceBroker(1, 1))

        asking = asyncio.ensure_future(asked())
        while not asking.done():
            relayed.control.run()
            relayed.data.run()
            await asyncio.sleep(0)
        assert errors[0]() is None

    gc.collect()
    gc.disable()
    try:
        asyncio.run(scene())
    finally:
        gc.enable()
