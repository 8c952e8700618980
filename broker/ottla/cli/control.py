"""The Control service for people at a terminal: asks one node after the other until the active controller answers."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ottla.errors import Refusal

if TYPE_CHECKING:
    import grpc

    from ottla.pb import control_pb2 as pb
    from ottla.pb.control_pb2_grpc import ControlStub

__all__ = ["ControlClient"]

ANSWER_S_MAX = 3.0
LEADER_ADDRESS = "ottla-leader-address"
Reply = TypeVar("Reply")


class ControlClient:
    """`addresses` are host:port of nodes' gRPC servers; any one that lives will do."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = list(addresses)
        self._channels: dict[str, grpc.Channel] = {}

    def describe(self) -> "pb.DescribeFleetReply":
        from ottla.pb import control_pb2 as pb

        return self._ask(lambda stub: stub.DescribeFleet(pb.DescribeFleetRequest(), timeout=ANSWER_S_MAX))

    def may_restart(self, broker: int) -> "pb.MayRestartReply":
        from ottla.pb import control_pb2 as pb

        return self._ask(lambda stub: stub.MayRestart(pb.MayRestartRequest(broker=broker), timeout=ANSWER_S_MAX))

    def drain(self, broker: int, *, all_replicas: bool) -> "pb.DrainReply":
        from ottla.pb import control_pb2 as pb

        request = pb.DrainRequest(broker=broker, all_replicas=all_replicas)
        return self._ask(lambda stub: stub.Drain(request, timeout=ANSWER_S_MAX))

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()

    def _ask(self, call: Callable[["ControlStub"], Reply]) -> Reply:
        """The leader first when it is known. A refusal by the service is told as it is."""
        import grpc

        reason = "no address"
        waiting = list(self._addresses)
        asked: set[str] = set()
        while waiting:
            address = waiting.pop(0)
            if address in asked:
                continue
            asked.add(address)
            try:
                return call(self._stub(address))
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED,
                                        grpc.StatusCode.FAILED_PRECONDITION):  # fmt: skip
                    raise Refusal(f"{address}: {error.details()}") from None
                reason = f"{address}: {error.details()}"
                waiting[:0] = _leader_addresses(error)
        raise Refusal(f"no active controller answers ({reason})")

    def _stub(self, address: str) -> "ControlStub":
        import grpc

        from ottla.pb.control_pb2_grpc import ControlStub

        if address not in self._channels:
            self._channels[address] = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        return ControlStub(self._channels[address])


def _leader_addresses(error: "grpc.RpcError") -> list[str]:
    """A node that does not lead names the one that does, when it knows."""
    return [str(one.value) for one in error.trailing_metadata() or () if one.key == LEADER_ADDRESS and one.value]
