"""Links between simulated nodes, with the interfaces of the real ones.

SimTransport    Raft messages: lost, delayed, reordered (ottla.raft.driver.Transport)
SimStream       replication: in order, but it may break (ottla.replica.streams.Stream)
SimChannels     calls of the control service (what ottla.rpc.forwarding makes of gRPC)
"""

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from ottla.raft.core.messages import Message
from ottla.replica.streams import StreamLost
from sim.virtual_loop import OWNER, VirtualLoop

if TYPE_CHECKING:
    from sim.node import Life, SimNode

__all__ = ["Network", "SimChannels", "SimStream", "SimTransport", "address_of", "connector"]

BREAK_SECONDS_MAX = 2.0  # until an end of a cut stream notices
KEEPALIVE_SECONDS_MAX = 15.0  # until gRPC gives up a call on a connection that is lost
Called = Callable[[str, int, int, bool], None]
"""Called before (False) and after (True) a call of the control service is handled: who asks and who is asked."""


def address_of(node_id: int) -> str:
    return f"node-{node_id}:1"


class Network:
    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.nodes: dict[int, SimNode] = {}
        self.cut: set[tuple[int, int]] = set()
        self.drop = 0.0
        self.delay_max_s = 0.002
        self.streams_made = 0
        self.watch: Called | None = None

    def observed(self, method: str, source: int, target: int, *, is_done: bool) -> None:
        if self.watch is not None:
            self.watch(method, source, target, is_done)

    def delay(self) -> float:
        return self.random.random() * self.delay_max_s

    def is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self.cut

    def loses(self, source: int, target: int) -> bool:
        return self.is_cut(source, target) or self.random.random() < self.drop

    def at(self, address: str) -> "SimNode":
        return next(node for node in self.nodes.values() if address_of(node.id) == address)

    def deliver(self, node: "SimNode", action: Callable[..., object], *arguments: object) -> None:
        """Now, as the doing of the node's process."""
        life = node.life
        if life is not None and life.process.alive:
            self.loop.call_soon(action, *arguments, context=life.process.context.copy())


def sender_lives() -> bool:
    """A process that died in the middle of a call goes on to its next pause, but nobody hears it."""
    owner = OWNER.get()
    return owner is None or owner.alive


class SimTransport:
    def __init__(self, network: Network, node: "SimNode") -> None:
        self._network = network
        self._node = node

    def address_of(self, node_id: int) -> str:
        return address_of(node_id)

    def attach(self, driver: object) -> None:
        pass

    def serve(self, server: object) -> None:
        pass

    async def close(self) -> None:
        pass

    def send(self, message: Message) -> None:
        network = self._network
        if sender_lives() and not network.loses(self._node.id, message.target):
            network.loop.later(network.delay(), self._arrive, message)

    def _arrive(self, message: Message) -> None:
        network, target = self._network, self._network.nodes[message.target]
        if not network.is_cut(self._node.id, target.id):
            network.deliver(target, target.hear_quorum, message)


class SimStream:
    """One end. What it sends arrives at `peer`, in order."""

    def __init__(self, network: Network, *, source: "SimNode", target: "SimNode") -> None:
        self._network = network
        network.streams_made += 1
        self._number = network.streams_made
        self._source, self._target = source, target
        self._owner = source.life
        self.peer: SimStream
        self._arrived: deque[bytes] = deque()
        self._lost: str | None = None
        self._is_broken = False
        self._free_at = 0.0
        self._waiter: asyncio.Future[None] | None = None

    def __hash__(self) -> int:
        """Not its address: whoever keeps streams in a set goes through them in the same order every time."""
        return self._number

    @classmethod
    def pair(cls, network: Network, source: "SimNode", target: "SimNode") -> "tuple[SimStream, SimStream]":
        near, far = cls(network, source=source, target=target), cls(network, source=target, target=source)
        near.peer, far.peer = far, near
        return near, far

    async def send(self, frame: bytes) -> None:
        await asyncio.sleep(0)
        if self._lost is not None:
            raise StreamLost(self._lost)
        loop = self._network.loop
        self._free_at = max(self._free_at, loop.time() + self._network.delay())
        loop.call_at(self._free_at, self._arrive, bytes(frame), context=loop.outside)

    def _arrive(self, frame: bytes) -> None:
        if self._network.is_cut(self._source.id, self._target.id) or not self._target_lives():
            self.break_off("the other side does not answer")
        elif not self._is_broken and self.peer._lost is None and self._lost is None:
            self.peer._arrived.append(frame)
            self.peer._wake()

    def _target_lives(self) -> bool:
        life = self.peer._owner
        return life is not None and life.process.alive

    async def receive(self) -> bytes | None:
        while not self._arrived:
            if self._lost is not None:
                raise StreamLost(self._lost)
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._arrived.popleft()

    def close(self) -> None:
        if self._lost is None:
            self._lose("closed")
            self._network.loop.later(self._network.delay(), self.peer._lose, "closed by the other side")

    def break_off(self, why: str) -> None:
        """Nothing arrives any more; both ends hear of it, each in its own time."""
        for end in (self, self.peer):
            end._is_broken = True
            self._network.loop.later(self._network.random.random() * BREAK_SECONDS_MAX, end._lose, why)

    def process_ended(self) -> None:
        """On this side."""
        self._lose("the process ended")
        self._network.loop.later(self._network.delay(), self.peer._lose, "the other process ended")

    def serve(self, life: "Life") -> None:
        self._owner = life

    def _lose(self, why: str) -> None:
        if self._lost is None:
            self._lost = why
            self._arrived.clear()
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def connector(network: Network, node: "SimNode") -> Callable[[str], SimStream]:
    def connect(address: str) -> SimStream:
        target = network.at(address)
        near, far = SimStream.pair(network, node, target)
        node.streams.append(near)
        if target.life is None or network.loses(node.id, target.id) or network.loses(target.id, node.id):
            near.break_off("cannot connect")
        else:
            target.streams.append(far)
            network.loop.later(network.delay(), network.deliver, target, target.serve_stream, far)
        return near

    return connect


class Unreachable(grpc.aio.AioRpcError):
    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=text)


class Aborted(Exception):
    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        self.code, self.text = code, text


class CalledContext:
    """What the handlers of the control service use of gRPC's."""

    def set_trailing_metadata(self, metadata: Any) -> None:
        pass

    def auth_context(self) -> dict[str, list[bytes]]:
        return {"transport_security_type": [b"insecure"]}

    def invocation_metadata(self) -> None:
        pass

    async def abort(self, code: grpc.StatusCode, text: str) -> None:
        raise Aborted(code, text)


class SimChannels:
    def __init__(self, network: Network, node: "SimNode") -> None:
        self._network = network
        self._node = node

    async def close(self) -> None:
        pass

    def forget(self, address: str) -> None:
        pass

    def to(self, address: str) -> "SimChannel":
        return SimChannel(self._network, self._node, self._network.at(address))


class SimChannel:
    def __init__(self, network: Network, source: "SimNode", target: "SimNode") -> None:
        self._network, self._source, self._target = network, source, target

    def unary_unary(
        self, path: str, request_serializer: Any = None, response_deserializer: Any = None, **_: Any
    ) -> Callable[..., Any]:
        encode, decode = request_serializer or bytes, response_deserializer or bytes

        async def call(request: Any, *, timeout: float, metadata: Any = ()) -> Any:  # noqa: ASYNC109 - gRPC's names
            answer = self._network.loop.create_future()
            self._ask(path.rpartition("/")[2], encode(request), answer)
            try:
                async with asyncio.timeout(timeout):
                    return decode(await answer)
            except TimeoutError:
                raise Unreachable(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer in time") from None

        return call

    def _ask(self, method: str, request: bytes, answer: "asyncio.Future[bytes]") -> None:
        network, target = self._network, self._target
        if sender_lives() and not network.loses(self._source.id, target.id):
            network.loop.later(network.delay(), self._arrive, method, request, answer)
        else:
            self._is_lost(answer)

    def _is_lost(self, answer: "asyncio.Future[bytes]") -> None:
        def give_up() -> None:
            if not answer.done():
                answer.set_exception(Unreachable(grpc.StatusCode.UNAVAILABLE, "keepalive watchdog timeout"))

        self._network.loop.later(KEEPALIVE_SECONDS_MAX, give_up)

    def _arrive(self, method: str, request: bytes, answer: "asyncio.Future[bytes]") -> None:
        network, target = self._network, self._target
        if target.life is None:
            self._reply(answer, Unreachable(grpc.StatusCode.UNAVAILABLE, "connection refused"))
        elif network.is_cut(self._source.id, target.id):
            self._is_lost(answer)
        else:
            network.observed(method, self._source.id, target.id, is_done=False)
            if target.life is not None:
                on_data = method in target.data_methods()
                network.loop.within(target.life.process, self._handle(method, request, answer), data=on_data)

    async def _handle(self, method: str, request: bytes, answer: "asyncio.Future[bytes]") -> None:
        handler = self._target.data_methods().get(method) or self._target.control_methods().get(method)
        if handler is None:
            self._reply(answer, Unreachable(grpc.StatusCode.UNAVAILABLE, "not started yet"))
            return
        try:
            decode, encode = handler.request_deserializer or bytes, handler.response_serializer or bytes
            reply = encode(await handler.unary_unary(decode(request), CalledContext()))
        except Aborted as refused:
            self._reply(answer, Unreachable(refused.code, refused.text))
        else:
            self._network.observed(method, self._source.id, self._target.id, is_done=True)
            if sender_lives():
                self._reply(answer, reply)

    def _reply(self, answer: "asyncio.Future[bytes]", outcome: "bytes | Unreachable") -> None:
        def settle() -> None:
            if answer.done():
                return
            if self._network.is_cut(self._target.id, self._source.id):
                self._is_lost(answer)
            elif isinstance(outcome, bytes):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)

        if not self._network.loses(self._target.id, self._source.id):
            self._network.loop.later(self._network.delay(), settle)
        else:
            self._is_lost(answer)
