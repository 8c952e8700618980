"""The active controller, on the node that leads the quorum: decides, proposes, answers after commit.

Decisions use the image with all proposed records, committed or not, so that two requests in flight cannot conflict.
When leadership is lost, that image is dropped.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import Command, Context
from ottla.metadata.decisions.controller import decide
from ottla.metadata.decisions.duties import at_activation
from ottla.metadata.decisions.features import SUPPORTED_FEATURES
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, encode_batch
from ottla.metadata.runtime.feed import MetadataMachine
from ottla.raft.core.raft import NotLeader, Overloaded, TooLarge
from ottla.raft.driver import Proposal, RaftDriver
from ottla.system import System

__all__ = ["ActiveController", "Controller"]

Reply = TypeVar("Reply")


class Controller(Protocol):
    """The controller: this node if it leads the quorum, otherwise a client of the node that does."""

    async def submit(self, command: Command[Reply]) -> Reply:
        """The reply, once this node has applied the command's records. KafkaError if the command was refused."""


class ActiveController:
    """`context` builds the context of a decision: `partial(Context, check_config=…, default_partitions=…)`."""

    def __init__(
        self,
        *,
        feed: MetadataMachine,
        driver: RaftDriver,
        system: System,
        node_id: int,
        context: Callable[..., Context] = Context,
    ) -> None:
        self._feed = feed
        self._driver = driver
        self._system = system
        self._node_id = node_id
        self._make_context = context
        # The feed's image with all proposed records; None while another node leads.
        self._ahead: Image | None = None
        self._proposed: Proposal | None = None  # the last one
        feed.on_leadership(self._leadership_changed)

    @property
    def is_active(self) -> bool:
        return self._ahead is not None and self._driver.leads

    async def submit(self, command: Command[Reply]) -> Reply:
        """KafkaError(NOT_CONTROLLER) if this node does not lead, or lost leadership before the commit."""
        decision = decide(self.require_active(), command, self.context())
        if decision.records:
            await self._commit(self._propose(decision.records))
        elif self._proposed is not None:
            # What is there already may not be committed yet: another leader may never have heard of it.
            await self._commit(self._proposed)
        return decision.reply

    def require_active(self) -> Image:
        """The image that decisions are made on. KafkaError(NOT_CONTROLLER) when another node leads."""
        if self._ahead is None or not self._driver.leads:
            raise self._not_controller()
        return self._ahead

    def context(self) -> Context:
        return self._make_context(
            now_ms=self._system.clock.wall_ms(),
            new_uuid=self._system.new_uuid,
            random=self._system.random,
            next_version=self._driver.next_index,
            node_id=self._node_id,
            supported_features=SUPPORTED_FEATURES,
        )

    def _propose(self, records: Sequence[Record]) -> Proposal:
        assert self._ahead is not None
        try:
            proposal = self._driver.submit([encode_batch(records)])
        except NotLeader:
            raise self._not_controller() from None
        except TooLarge as error:
            raise KafkaError(Code.policy_violation, f"The change is too large for the metadata log: {error}") from None
        except Overloaded as error:
            raise KafkaError(Code.request_timed_out, f"the controller is overloaded: {error}") from None
        self._ahead, _ = self._ahead.apply(records, version=proposal.index, epoch=proposal.term)
        self._proposed = proposal
        return proposal

    async def _commit(self, proposal: Proposal) -> None:
        try:
            await asyncio.shield(proposal.done)
        except NotLeader:
            raise self._not_controller() from None

    def _leadership_changed(self, leads: bool) -> None:
        self._ahead = self._feed.image if leads else None
        self._proposed = None
        if leads and (records := at_activation(self._feed.image, self.context())):
            # Nothing waits for this; later decisions build on it.
            self._propose(records).done.add_done_callback(asyncio.Future.exception)

    def _not_controller(self) -> KafkaError:
        leader = self._driver.leader_id
        where = f"node {leader} is" if leader is not None else "no node is known to be"
        return KafkaError(Code.not_controller, f"This node is not the active controller; {where}.")
