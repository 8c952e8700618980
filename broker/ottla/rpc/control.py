"""The control service between nodes: commands, heartbeats, the quorum's state. The active controller answers."""

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import grpc
import grpc.aio
import msgspec

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import (
    AllocateProducerIds,
    AlterPartition,
    Command,
    FenceBroker,
    RegisterBroker,
    ReplicasLost,
    RotateScramCredentials,
    UnfenceBroker,
)
from ottla.metadata.runtime.active import ActiveController
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.metadata.runtime.watch import BrokerWatch, Heartbeat
from ottla.pb import control_pb2 as pb
from ottla.raft.driver import RaftDriver
from ottla.rpc.gate import Context, require_node
from ottla.rpc.leader_search import LEADER_ADDRESS_KEY, LEADER_ID_KEY
from ottla.rpc.packing import UnknownCommand, pack_reply, unpack_command
from ottla.rpc.roles import Denied

__all__ = ["SERVICE", "Context", "ControlService", "outcome_of", "unary"]

SERVICE = "ottla.pb.Control"


class ControlService:
    def __init__(
        self,
        *,
        controller: ActiveController,
        watch: BrokerWatch,
        feed: MetadataFeed,
        driver: RaftDriver,
        address_of: Callable[[int], str],
    ) -> None:
        self.controller = controller
        self.watch = watch
        self.feed = feed
        self.driver = driver
        self.address_of = address_of

    def methods(self) -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
        return {
            "Submit": unary(self._submit, pb.SubmitRequest),
            "Heartbeat": unary(self._heartbeat, pb.HeartbeatRequest),
            "DescribeQuorum": unary(self._describe_quorum, pb.DescribeQuorumRequest),
        }

    async def _submit(self, request: pb.SubmitRequest, context: Context) -> pb.SubmitReply:
        try:
            command = unpack_command(request.type, request.command)
        except UnknownCommand as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        if isinstance(command, RotateScramCredentials):
            raise Denied("no node rotates passwords: people do, by RotateScram")
        if (speaker := _speaker_of(command)) is not None:
            require_node(context, speaker)
        try:
            reply = await self.controller.submit(command)
        except KafkaError as error:
            await self.refuse_if_not_leader(error, context)
            return pb.SubmitReply(outcome=outcome_of(error), version=self.feed.image.version)
        return pb.SubmitReply(version=self.feed.image.version, reply=pack_reply(reply))

    async def _heartbeat(self, request: pb.HeartbeatRequest, context: Context) -> pb.HeartbeatReply:
        require_node(context, request.broker)
        beat = Heartbeat(
            broker=request.broker,
            epoch=request.epoch,
            version=request.version,
            ready=request.ready,
            wants_shutdown=request.wants_shutdown,
            pulse_age_ms=request.pulse_age_ms,
        )
        try:
            reply = await self.watch.heartbeat(beat)
        except KafkaError as error:
            await self.refuse_if_not_leader(error, context)
            return pb.HeartbeatReply(outcome=outcome_of(error))
        return pb.HeartbeatReply(fenced=reply.fenced, may_shut_down=reply.may_shut_down, caught_up=reply.caught_up)

    async def _describe_quorum(self, request: pb.DescribeQuorumRequest, context: Context) -> pb.DescribeQuorumReply:
        await self.require_leader(context)
        state = msgspec.msgpack.encode(self.driver.describe())
        return pb.DescribeQuorumReply(state=state, cluster_id=self.feed.image.cluster_id)

    async def require_leader(self, context: Context) -> None:
        if not self.controller.is_active:
            await self._name_leader(context)

    async def refuse_if_not_leader(self, error: KafkaError, context: Context) -> None:
        if error.code is Code.not_controller:
            await self._name_leader(context)

    async def _name_leader(self, context: Context) -> NoReturn:
        leader = self.driver.leader_id
        address = "" if leader is None else self.address_of(leader)
        context.set_trailing_metadata(
            ((LEADER_ID_KEY, "-1" if leader is None else str(leader)), (LEADER_ADDRESS_KEY, address))
        )
        where = "nobody is known to be" if leader is None else f"node {leader} at {address} is"
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"this node is not the active controller; {where}")
        raise AssertionError("abort does not return")


def _speaker_of(command: Command[Any]) -> int | None:
    """The broker that speaks for itself by this command; None when it speaks for a client, whom it has checked."""
    match command:
        case RegisterBroker(id=broker) | FenceBroker(id=broker) | UnfenceBroker(id=broker):
            return broker
        case AllocateProducerIds() | AlterPartition() | ReplicasLost():
            return command.broker_id
    return None


def outcome_of(error: KafkaError) -> pb.Outcome:
    return pb.Outcome(code=error.code, message=error.message or "")


def unary(handler: Callable[[Any, Context], Awaitable[Any]], request: type[Any]) -> "grpc.RpcMethodHandler[Any, Any]":
    return grpc.unary_unary_rpc_method_handler(handler, request.FromString, lambda reply: reply.SerializeToString())
