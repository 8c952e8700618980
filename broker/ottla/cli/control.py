"""The Control service for people at a terminal: asks one node after the other until the active controller answers."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ottla.errors import Refusal

if TYPE_CHECKING:
    import grpc

    from ottla.pb import control_pb2 as pb
    from ottla.pb.control_pb2_grpc import ControlStub
    from ottla.rpc.credentials import Credentials

__all__ = ["ControlClient", "NobodyAnswers"]

ANSWER_S_MAX = 3.0
Reply = TypeVar("Reply")


class NobodyAnswers(Refusal):
    """No node leads; `unreachable` are those that are no gRPC server, or none that can be reached."""

    def __init__(self, reason: str, unreachable: Sequence[str]) -> None:
        super().__init__(f"no active controller answers ({reason})")
        self.unreachable = tuple(unreachable)


class ControlClient:
    """`addresses` are host:port of nodes' gRPC servers; one that answers is enough. Plaintext without credentials."""

    def __init__(self, addresses: Sequence[str], credentials: "Credentials | None" = None) -> None:
        self._addresses = list(addresses)
        self._credentials = credentials
        self._channels: dict[str, grpc.Channel] = {}

    @property
    def by_tls(self) -> bool:
        return self._credentials is not None

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

    def describe_scram(self, user: str) -> "pb.DescribeScramReply":
        from ottla.pb import control_pb2 as pb

        return self._ask(lambda stub: stub.DescribeScram(pb.DescribeScramRequest(user=user), timeout=ANSWER_S_MAX))

    def rotate_scram(self, request: "pb.RotateScramRequest") -> "pb.RotateScramReply":
        return self._ask(lambda stub: stub.RotateScram(request, timeout=ANSWER_S_MAX))

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()

    def _ask(self, call: Callable[["ControlStub"], Reply]) -> Reply:
        """The next node is asked only if this one does not lead or answer; any other error is shown."""
        import grpc

        from ottla.rpc.leader_search import LEADER_ADDRESS_KEY, NOT_LEADING, LeaderSearch, named_leader

        reason, unreachable = "no address", []
        search = LeaderSearch(self._addresses)
        for address in search:
            try:
                return call(self._stub(address))
            except grpc.RpcError as error:
                reason = f"{address}: {error.details()}"
                if error.code() not in NOT_LEADING:
                    raise Refusal(reason) from None
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    unreachable.append(address)
                    self._channels.pop(address).close()  # it would wait before it tries again, and nodes' poller longer
                if leader := named_leader(error.trailing_metadata(), LEADER_ADDRESS_KEY):
                    search.ask_first(leader)
        raise NobodyAnswers(reason, unreachable)

    def _stub(self, address: str) -> "ControlStub":

        from ottla.pb.control_pb2_grpc import ControlStub

        if address not in self._channels:
            self._channels[address] = self._channel(address)
        return ControlStub(self._channels[address])

    def _channel(self, address: str) -> "grpc.Channel":
        import grpc

        options = [("grpc.enable_http_proxy", 0)]
        if self._credentials is None:
            return grpc.insecure_channel(address, options=options)
        named = [*options, ("grpc.ssl_target_name_override", self._credentials.peer_name)]
        return grpc.secure_channel(address, self._credentials.for_channel(), options=named)
