"""The controller as every node of a fleet sees it: here when this node leads the quorum, otherwise over gRPC.

A call is made again while nobody leads or the leader cannot be reached, until its time is up. As in Kafka, a command
whose answer was lost is sent again too, and then answers what it finds. Kafka does so until time is up; here it is sent
again once, since a command that holds one controller's loop would take the lead from each in turn. After the second
silence the client gets REQUEST_TIMED_OUT, and by its own time-out decides whether to ask again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio
import msgspec

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import Command
from ottla.metadata.runtime.active import ActiveController
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.metadata.runtime.watch import BrokerWatch, Heartbeat, HeartbeatReply
from ottla.pb import control_pb2 as pb
from ottla.pb.control_pb2_grpc import ControlStub
from ottla.ports import Clock
from ottla.raft.core.messages import Member
from ottla.raft.driver import QuorumState, RaftDriver
from ottla.raft.voter_changes import VoterChanges
from ottla.rpc.channels import Channels
from ottla.rpc.leader_search import NOT_LEADING
from ottla.rpc.packing import pack_command, unpack_reply
from ottla.rpc.roles import CLUSTER_KEY

if TYPE_CHECKING:
    from ottla.pb.control_pb2_grpc import ControlAsyncStub

__all__ = ["Forwarding"]

Reply = TypeVar("Reply")

COMMAND_SECONDS_MAX = 30.0
ATTEMPT_SECONDS_MAX = 10.0
RETRY_SECONDS = 0.05
# Controllers that may take a command and not answer it, by a deadline or by losing the lead meanwhile.
SILENCES_MAX = 2
# How soon an attempt notices that its leader is none any more.
LEADER_CHECK_SECONDS = 0.1


class LeadLost(KafkaError):
    """The controller that was asked leads no more and has not answered: nobody knows what it did."""


class Forwarding:
    def __init__(
        self,
        *,
        local: ActiveController,
        watch: BrokerWatch,
        voters: VoterChanges,
        driver: RaftDriver,
        feed: MetadataFeed,
        channels: Channels,
        address_of: Callable[[int], str],
        clock: Clock,
    ) -> None:
        self._local = local
        self._watch = watch
        self._voters = voters
        self._driver = driver
        self._feed = feed
        self._channels = channels
        self._address_of = address_of
        self._clock = clock
        self._cluster = ((CLUSTER_KEY, feed.image.cluster_id),)

    async def submit(self, command: Command[Reply]) -> Reply:
        name, data = pack_command(command)

        async def remotely(stub: "ControlAsyncStub") -> Reply:
            request = pb.SubmitRequest(type=name, command=data)
            answer = await stub.Submit(request, timeout=ATTEMPT_SECONDS_MAX, metadata=self._cluster)
            await self._seen(answer.version)
            _raise_if_refused(answer.outcome)
            return unpack_reply(command, answer.reply)

        return await self._ask(lambda: self._local.submit(command), remotely, seconds=COMMAND_SECONDS_MAX)

    async def _seen(self, version: int) -> None:
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS_MAX):
                await self._feed.reached(version)
        except TimeoutError:
            text = f"The controller decided at version {version}, which this node has not seen yet."
            raise KafkaError(Code.request_timed_out, text) from None

    async def heartbeat(self, beat: Heartbeat, *, seconds: float) -> HeartbeatReply:
        async def remotely(stub: "ControlAsyncStub") -> HeartbeatReply:
            request = pb.HeartbeatRequest(**msgspec.structs.asdict(beat))
            answer = await stub.Heartbeat(request, timeout=seconds, metadata=self._cluster)
            _raise_if_refused(answer.outcome)
            return HeartbeatReply(fenced=answer.fenced, caught_up=answer.caught_up, may_shut_down=answer.may_shut_down)

        return await self._ask(lambda: self._watch.heartbeat(beat), remotely, seconds=seconds)

    async def describe_quorum(self) -> QuorumState:
        async def locally() -> QuorumState:
            return self._driver.describe()

        async def remotely(stub: "ControlAsyncStub") -> QuorumState:
            answer = await stub.DescribeQuorum(pb.DescribeQuorumRequest(), timeout=ATTEMPT_SECONDS_MAX)
            return msgspec.msgpack.decode(answer.state, type=QuorumState)

        return await self._ask(locally, remotely, seconds=COMMAND_SECONDS_MAX)

    async def add_voter(self, asked: Member, *, seconds: float) -> None:
        give_up_at = self._clock.monotonic() + seconds

        def wait_s() -> float:
            """The wait does not start over with a new leader."""
            return max(give_up_at - self._clock.monotonic(), 0.0)

        async def remotely(stub: "ControlAsyncStub") -> None:
            request = pb.AddVoterRequest(node=asked.id, directory=asked.directory.bytes, wait_ms=int(wait_s() * 1000))
            answer = await stub.AddVoter(request, timeout=wait_s() + ATTEMPT_SECONDS_MAX)
            _raise_if_refused(answer.outcome)

        await self._ask(lambda: self._voters.add_voter(asked, seconds=wait_s()), remotely, seconds=seconds)

    async def remove_voter(self, asked: Member, *, seconds: float) -> None:
        async def remotely(stub: "ControlAsyncStub") -> None:
            wait_ms = int(seconds * 1000)
            request = pb.RemoveVoterRequest(node=asked.id, directory=asked.directory.bytes, wait_ms=wait_ms)
            answer = await stub.RemoveVoter(request, timeout=seconds + ATTEMPT_SECONDS_MAX)
            _raise_if_refused(answer.outcome)

        async def locally() -> None:
            await self._voters.remove_voter(asked, seconds=seconds)

        await self._ask(locally, remotely, seconds=COMMAND_SECONDS_MAX)

    async def _ask(
        self,
        locally: Callable[[], Awaitable[Reply]],
        remotely: "Callable[[ControlAsyncStub], Awaitable[Reply]]",
        *,
        seconds: float,
    ) -> Reply:
        give_up_at = self._clock.monotonic() + seconds
        silences = 0
        while True:
            leader, is_local = self._driver.leader_id, self._local.is_active
            try:
                if is_local:
                    return await locally()
                if leader is not None and (address := self._address_of(leader)):
                    stub = ControlStub(self._channels.to(address))
                    return await self._while_leading(leader, remotely(stub))
                problem = "no node is known to be the active controller"
            except KafkaError as error:
                if error.code is not Code.not_controller:
                    raise
                silences += is_local or isinstance(error, LeadLost)
                problem = str(error)
            except grpc.aio.AioRpcError as error:
                if error.code() not in NOT_LEADING:
                    raise KafkaError(Code.unknown_server_error, f"node {leader}: {error.details()}") from error
                silences += error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
                problem = f"node {leader}: {error.details()}"
            if self._clock.monotonic() >= give_up_at or silences >= SILENCES_MAX:
                raise KafkaError(Code.request_timed_out, f"The controller did not answer in time: {problem}")
            await asyncio.sleep(RETRY_SECONDS)

    async def _while_leading(self, leader: int, answer: Awaitable[Reply]) -> Reply:
        """Does not wait for a node that leads no more: it may be frozen or cut off."""
        task = asyncio.ensure_future(answer)
        try:
            while not task.done():
                await asyncio.wait([task], timeout=LEADER_CHECK_SECONDS)
                if not task.done() and self._driver.leader_id not in (leader, None):
                    raise LeadLost(Code.not_controller, f"node {leader} does not lead any more")
            return task.result()
        finally:
            task.cancel()


def _raise_if_refused(outcome: pb.Outcome) -> None:
    if outcome.code:
        raise KafkaError(Code(outcome.code), outcome.message or None)
