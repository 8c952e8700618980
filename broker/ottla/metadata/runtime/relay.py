"""Carries images from the control loop to the data loop, and commands back."""

from typing import Protocol, TypeVar

from ottla.errors import KafkaError
from ottla.handover import Handover
from ottla.metadata.decisions.commands import Command
from ottla.metadata.model.changes import Changes, compare
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.active import Controller
from ottla.metadata.runtime.feed import MetadataFeed, MetadataMachine
from ottla.raft.core.messages import Member
from ottla.raft.driver import QuorumState
from ottla.raft.voter_changes import VoterAdministration

__all__ = ["ControllerLink", "FarController", "FeedRelay"]

Reply = TypeVar("Reply")

# Images sent to the data loop and not applied there. A data loop that is further behind gets the newest image once it
# has applied these.
IMAGES_UNDER_WAY_MAX = 1_000


class FeedRelay:
    """Sends every image of the machine to the data loop's feed, in order. Created on the control loop."""

    def __init__(self, handover: Handover, *, machine: MetadataMachine, feed: MetadataFeed) -> None:
        self._handover = handover
        self._feed = feed
        self._under_way = 0
        self._held_back: Image | None = None
        machine.on_version(self._moved)
        if machine.image.version:
            self._send(machine.image, None)

    # on the control loop

    def _moved(self, image: Image, changes: Changes) -> None:
        if self._under_way >= IMAGES_UNDER_WAY_MAX or self._held_back is not None:
            self._held_back = image
        else:
            self._send(image, changes)

    def _send(self, image: Image, changes: Changes | None) -> None:
        self._under_way += 1
        self._handover.data.post(self._publish, image, changes)

    def _published(self) -> None:
        self._under_way -= 1
        if self._under_way == 0 and self._held_back is not None:
            image, self._held_back = self._held_back, None
            self._send(image, None)

    # on the data loop

    def _publish(self, image: Image, changes: Changes | None) -> None:
        """`changes` None: images were skipped, as after a snapshot from the leader."""
        assert self._handover.data.is_here()
        try:
            self._feed.publish(image, compare(self._feed.image, image) if changes is None else changes)
            self._handover.pulse.has_seen(image.version)
        finally:
            self._handover.control.post(self._published)


class FarController(Controller, VoterAdministration, Protocol):
    """The parts on the control loop."""

    async def describe_quorum(self) -> QuorumState: ...


class ControllerLink:
    """The controller for the data loop: every call runs on the control loop."""

    def __init__(self, handover: Handover, *, far: FarController, machine: MetadataMachine, feed: MetadataFeed) -> None:
        self._handover = handover
        self._far = far
        self._machine = machine
        self._feed = feed

    async def submit(self, command: Command[Reply]) -> Reply:
        """Answered once the data loop has applied the command's records: a client's next request sees its topic."""

        async def submitted() -> tuple[Reply | None, KafkaError | None, int]:
            try:
                return await self._far.submit(command), None, self._machine.image.version
            except KafkaError as error:
                return None, error, self._machine.image.version

        reply, error, version = await self._handover.on_control(submitted)
        await self._feed.reached(version)
        if error is None:
            return reply  # type: ignore[return-value]
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame, and to the frames of the decision with their image

    async def describe_quorum(self) -> QuorumState:
        return await self._handover.on_control(self._far.describe_quorum)

    async def add_voter(self, asked: Member, *, seconds: float) -> None:
        await self._handover.on_control(lambda: self._far.add_voter(asked, seconds=seconds))

    async def remove_voter(self, asked: Member, *, seconds: float) -> None:
        await self._handover.on_control(lambda: self._far.remove_voter(asked, seconds=seconds))
