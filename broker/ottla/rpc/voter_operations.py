"""Voters through the control service: added and removed while the quorum works."""

import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ottla.errors import Code, KafkaError
from ottla.pb import control_pb2 as pb
from ottla.raft.core.messages import ANY_DIRECTORY, Member
from ottla.raft.voter_changes import VoterChanges
from ottla.rpc.control import Context, ControlService, outcome_of, unary

if TYPE_CHECKING:
    import grpc

__all__ = ["VoterOperations"]

Request = pb.AddVoterRequest | pb.RemoveVoterRequest
Change = Callable[..., Awaitable[None]]


class VoterOperations:
    def __init__(self, service: ControlService, changes: VoterChanges) -> None:
        self._service = service
        self._changes = changes

    def methods(self) -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
        return {
            "AddVoter": unary(self._add, pb.AddVoterRequest),
            "RemoveVoter": unary(self._remove, pb.RemoveVoterRequest),
        }

    async def _add(self, request: pb.AddVoterRequest, context: Context) -> pb.VotersReply:
        return await self._change(self._changes.add_voter, request, context)

    async def _remove(self, request: pb.RemoveVoterRequest, context: Context) -> pb.VotersReply:
        return await self._change(self._changes.remove_voter, request, context)

    async def _change(self, change: Change, request: Request, context: Context) -> pb.VotersReply:
        outcome = None
        try:
            await change(_asked(request), seconds=request.wait_ms / 1000)
        except KafkaError as error:
            await self._service.refuse_if_not_leader(error, context)
            outcome = outcome_of(error)
        return pb.VotersReply(voters=self._voters(), outcome=outcome)

    def _voters(self) -> list[pb.QuorumVoter]:
        voters = self._service.driver.raft.log.voters
        return [pb.QuorumVoter(id=v.id, directory=v.directory.bytes, address=v.endpoint) for v in voters]


def _asked(request: Request) -> Member:
    try:
        return Member(request.node, uuid.UUID(bytes=request.directory or ANY_DIRECTORY.bytes))
    except ValueError:
        text = f"A directory id has 16 bytes, not {len(request.directory)}."
        raise KafkaError(Code.invalid_request, text) from None
