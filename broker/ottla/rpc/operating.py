"""The control service for operators and tools: how the fleet is, what may be done to it, and doing it."""

from collections.abc import Callable
from typing import Any, TypeVar

import grpc

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AlterReassignments, Command, Reassignment, UnregisterBroker
from ottla.metadata.decisions.draining import drain, drain_progress
from ottla.metadata.decisions.safety import PartitionReason, may_restart
from ottla.pb import control_pb2 as pb
from ottla.raft.voter_changes import VoterChanges
from ottla.rpc.control import Context, ControlService, outcome_of, unary
from ottla.rpc.fleet_description import describe_fleet
from ottla.rpc.topic_operations import TopicOperations
from ottla.rpc.user_operations import UserOperations
from ottla.rpc.voter_operations import VoterOperations

__all__ = ["Operations"]

_REFUSED = grpc.StatusCode.INVALID_ARGUMENT

Reply = TypeVar("Reply")

TOLD_MAX = 100  # brokers in a sentence


class Operations:
    """`isr_size_min_of` gives min.insync.replicas of a topic by its name."""

    def __init__(self, service: ControlService, *, voters: VoterChanges, isr_size_min_of: Callable[[str], int]) -> None:
        self._service = service
        self._voters = voters
        self._isr_size_min_of = isr_size_min_of

    def methods(self) -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
        return {
            "DescribeFleet": unary(self._describe_fleet, pb.DescribeFleetRequest),
            "MayRestart": unary(self._may_restart, pb.MayRestartRequest),
            "Drain": unary(self._drain, pb.DrainRequest),
            "Reassign": unary(self._reassign, pb.ReassignRequest),
            "Unregister": unary(self._unregister, pb.UnregisterRequest),
            **TopicOperations(self._service).methods(),
            **VoterOperations(self._service, self._voters).methods(),
            **UserOperations(self._service).methods(),
        }

    async def _describe_fleet(self, request: pb.DescribeFleetRequest, context: Context) -> pb.DescribeFleetReply:
        await self._service.require_leader(context)
        return describe_fleet(
            self._service.feed.image,
            self._service.driver.describe(),
            voters_heard=self._service.driver.voters_heard(),
            version_of=self._service.watch.version_of,
            address_of=self._service.address_of,
            isr_size_min_of=self._isr_size_min_of,
        )

    async def _may_restart(self, request: pb.MayRestartRequest, context: Context) -> pb.MayRestartReply:
        await self._service.require_leader(context)
        driver = self._service.driver
        verdict = may_restart(
            self._service.feed.image,
            request.broker,
            voters={voter.id for voter in driver.raft.log.voters},
            voters_alive=driver.voters_heard(),
            brokers_alive=self._service.watch.alive,
            isr_size_min_of=self._isr_size_min_of,
        )
        return pb.MayRestartReply(
            yes=verdict.yes,
            reasons=verdict.reasons,
            partitions=map(_reason, verdict.partitions),
            warnings=map(_reason, verdict.warnings),
        )

    async def _drain(self, request: pb.DrainRequest, context: Context) -> pb.DrainReply:
        """Idempotent: what moves already is not begun again, so the same call shows the progress."""
        await self._service.require_leader(context)
        if request.broker not in self._service.feed.image.brokers:
            there = ", ".join(map(str, sorted(self._service.feed.image.brokers)[:TOLD_MAX])) or "none"
            sentence = f"broker {request.broker} is not registered; registered are {there}"
            await context.abort(grpc.StatusCode.NOT_FOUND, sentence)
        plan = drain(self._service.feed.image, request.broker, leaders_only=not request.all_replicas)
        for command in plan.commands:
            await self._submit(command, context)
        progress = drain_progress(self._service.feed.image, request.broker)
        left = progress.replicas_left if request.all_replicas else progress.leaders_left
        return pb.DrainReply(
            leaders_left=progress.leaders_left,
            replicas_left=progress.replicas_left,
            moves_started=plan.moves,
            stuck=map(_reason, plan.stuck),
            done=left == 0,
        )

    async def _reassign(self, request: pb.ReassignRequest, context: Context) -> pb.ReassignReply:
        moves = [Reassignment(m.topic, m.partition, tuple(m.replicas) or None) for m in request.moves]
        outcomes = await self._submit(AlterReassignments(moves), context)
        return pb.ReassignReply(
            moves=[
                pb.MoveOutcome(
                    topic=move.topic,
                    partition=move.index,
                    outcome=pb.Outcome(code=outcome.code, message=outcome.message or ""),
                )
                for move, outcome in zip(moves, outcomes, strict=True)
            ]
        )

    async def _unregister(self, request: pb.UnregisterRequest, context: Context) -> pb.UnregisterReply:
        try:
            await self._service.controller.submit(UnregisterBroker(request.broker))
        except KafkaError as error:
            await self._service.refuse_if_not_leader(error, context)
            return pb.UnregisterReply(outcome=outcome_of(error))
        return pb.UnregisterReply()

    async def _submit(self, command: Command[Reply], context: Context) -> Reply:
        """A command that is refused as a whole fails the call."""
        try:
            return await self._service.controller.submit(command)
        except KafkaError as error:
            await self._service.refuse_if_not_leader(error, context)
            status = grpc.StatusCode.UNAVAILABLE if error.code is Code.request_timed_out else _REFUSED
            await context.abort(status, f"{error.code.name}: {error}")
            raise AssertionError("abort does not return") from error


def _reason(reason: PartitionReason) -> pb.PartitionReason:
    return pb.PartitionReason(topic=reason.topic, partition=reason.index, reason=reason.reason)
