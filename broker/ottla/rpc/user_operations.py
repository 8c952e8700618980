"""Users through the control service: a password is rotated while the one before stays good for a while.

What comes here are keys that were made from the password (RFC 5802), never the password itself.
"""

from typing import TYPE_CHECKING, Any

from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import RotateScramCredentials, ScramUpsertion
from ottla.metadata.model.credentials import MECHANISM_NAMES, ScramKeys
from ottla.pb import control_pb2 as pb
from ottla.rpc.control import Context, ControlService, outcome_of, unary

if TYPE_CHECKING:
    import grpc

__all__ = ["UserOperations"]


class UserOperations:
    def __init__(self, service: ControlService) -> None:
        self._service = service

    def methods(self) -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
        return {
            "DescribeScram": unary(self._describe, pb.DescribeScramRequest),
            "RotateScram": unary(self._rotate, pb.RotateScramRequest),
        }

    async def _describe(self, request: pb.DescribeScramRequest, context: Context) -> pb.DescribeScramReply:
        """Salts and iterations are no secret: every client that logs in is told them."""
        await self._service.require_leader(context)
        kept = self._service.feed.image.scram_credentials
        found = {each: kept[request.user, each] for each in MECHANISM_NAMES if (request.user, each) in kept}
        return pb.DescribeScramReply(
            credentials=[
                pb.ScramParameters(
                    mechanism=mechanism,
                    salt=credential.salt,
                    iterations=credential.iterations,
                    previous_until_ms=credential.previous.until_ms if credential.previous is not None else 0,
                )
                for mechanism, credential in found.items()
            ]
        )

    async def _rotate(self, request: pb.RotateScramRequest, context: Context) -> pb.RotateScramReply:
        changes = [
            ScramUpsertion(
                request.user, each.mechanism, each.salt, each.iterations, ScramKeys(each.stored_key, each.server_key)
            )
            for each in request.credentials
        ]
        try:
            await self._service.controller.submit(RotateScramCredentials(changes, request.keep_old_ms))
        except KafkaError as error:
            await self._service.refuse_if_not_leader(error, context)
            return pb.RotateScramReply(outcome=outcome_of(error))
        return pb.RotateScramReply()
