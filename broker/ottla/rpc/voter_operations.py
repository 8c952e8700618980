"""Voters through the control service: added and removed while the quorum works."""

from typing import TYPE_CHECKING, Any

import grpc

from ottla.pb import control_pb2 as pb
from ottla.raft.core import NotLeader, VoterChangeRefused
from ottla.raft.messages import Voters
from ottla.raft.voting import steps_to_add, steps_to_remove
from ottla.rpc.control import Context, ControlService, unary

if TYPE_CHECKING:
    from ottla.raft.progress import Progress

__all__ = ["VoterOperations"]

# A voter that is far behind would count in the majority without helping it.
ENTRIES_BEHIND_MAX = 1_000


class VoterOperations:
    def __init__(self, service: ControlService) -> None:
        self._service = service

    def methods(self) -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
        return {
            "AddVoter": unary(self._add, pb.AddVoterRequest),
            "RemoveVoter": unary(self._remove, pb.RemoveVoterRequest),
        }

    async def _add(self, request: pb.AddVoterRequest, context: Context) -> pb.VotersReply:
        await self._service.require_leader(context)
        raft = self._service.driver.raft
        peer = raft.peers.get(request.node)
        if request.node == raft.member.id:
            return self._reply()
        if peer is None or not self._keeps_up(peer):
            problem = "does not follow the metadata log" if peer is None else "has not caught up with the metadata log"
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"node {request.node} {problem}; try again when it does")
        steps = steps_to_add(raft.log.voters, peer.member, self._service.address_of(request.node))
        return await self._take(steps, context)

    def _keeps_up(self, peer: "Progress") -> bool:
        return peer.match + ENTRIES_BEHIND_MAX >= self._service.driver.raft.log.commit

    async def _remove(self, request: pb.RemoveVoterRequest, context: Context) -> pb.VotersReply:
        await self._service.require_leader(context)
        return await self._take(steps_to_remove(self._service.driver.raft.log.voters, request.node), context)

    async def _take(self, steps: list[Voters], context: Context) -> pb.VotersReply:
        try:
            for voters in steps:
                await self._service.driver.change_voters(voters)
        except VoterChangeRefused as refused:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refused))
        except NotLeader:
            await self._service.require_leader(context)
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the leader changed meanwhile; look before you try again")
        return self._reply()

    def _reply(self) -> pb.VotersReply:
        voters = self._service.driver.raft.log.voters
        made = [pb.QuorumVoter(id=v.id, directory=v.directory.bytes, address=v.endpoint) for v in voters]
        return pb.VotersReply(voters=made)
