"""The way to one other member of the quorum: a stream that is opened when there is something to say."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable

import grpc
import grpc.aio

from ottla.pb import quorum_pb2 as pb
from ottla.pb.quorum_pb2_grpc import QuorumStub
from ottla.raft.core.messages import InstallSnapshot, Message
from ottla.rpc.channels import Channels
from ottla.rpc.greeting import Identity, hello_to
from ottla.rpc.probing import nobody_listens
from ottla.rpc.quorum_messages import encode, snapshot_frames

__all__ = ["Peer"]

log = logging.getLogger("ottla.quorum")

# Raft tolerates loss: the oldest of more than these is dropped.
QUEUED_MESSAGES_MAX = 256
WELCOME_SECONDS_MAX = 5.0
RETRY_SECONDS, RETRY_REFUSED_SECONDS = 0.1, 1.0
SNAPSHOT_SECONDS_MAX = 600.0
REFUSED = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
)


class Peer:
    """`address_of` is asked at every attempt; `on_gone` is called when nobody listens where the node was."""

    def __init__(
        self,
        node_id: int,
        *,
        own: Identity,
        channels: Channels,
        address_of: Callable[[int], str],
        on_gone: Callable[[int], None],
    ) -> None:
        self._node_id = node_id
        self._own = own
        self._channels = channels
        self._address_of = address_of
        self._on_gone = on_gone
        self._queue: deque[Message] = deque(maxlen=QUEUED_MESSAGES_MAX)
        self._wake = asyncio.Event()
        self._trouble = ""
        self._closing = False
        self._snapshot: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._run(), name=f"quorum-to-{node_id}")

    def send(self, message: Message) -> None:
        if isinstance(message, InstallSnapshot):
            self._send_snapshot(message)
            return
        self._queue.append(message)
        self._wake.set()

    async def close(self) -> None:
        self._closing = True
        tasks = [task for task in (self._task, self._snapshot) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # the stream

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            address = self._address_of(self._node_id)
            if address:
                await self._try(address)
            self._queue.clear()
            self._wake.clear()

    async def _try(self, address: str) -> None:
        call = QuorumStub(self._channels.to(address)).Exchange(None)
        call.add_done_callback(lambda _: self._wake.set())
        refused = False
        try:
            await self._greet(call)
            await self._converse(call)
            self._note(await call.details() or "the stream ended", address)
        except grpc.aio.AioRpcError as error:
            refused = error.code() in REFUSED
            self._note(_reason(error), address, level=logging.ERROR if refused else logging.WARNING)
        except (asyncio.InvalidStateError, TimeoutError) as error:
            self._note(_reason(error), address)
        except asyncio.CancelledError:
            if self._closing or _is_cancelled():  # otherwise it is gRPC's word for a call that ended
                raise
            self._note("the stream broke", address)
        finally:
            call.cancel()
        if await nobody_listens(address):
            self._on_gone(self._node_id)
        await asyncio.sleep(RETRY_REFUSED_SECONDS if refused else RETRY_SECONDS)

    async def _greet(self, call: "grpc.aio.StreamStreamCall[pb.QuorumFrame, pb.Welcome]") -> None:
        async with asyncio.timeout(WELCOME_SECONDS_MAX):
            await call.write(pb.QuorumFrame(hello=hello_to(self._node_id, self._own)))
            await call.read()
        self._note("", "")

    async def _converse(self, call: "grpc.aio.StreamStreamCall[pb.QuorumFrame, pb.Welcome]") -> None:
        while not call.done():
            self._wake.clear()
            while self._queue and not call.done():
                message = encode(self._queue.popleft(), self._address_of)
                await call.write(pb.QuorumFrame(message=message))
            await self._wake.wait()

    def _note(self, trouble: str, address: str, level: int = logging.WARNING) -> None:
        """A line when something changed, not one per attempt."""
        if trouble and trouble != self._trouble:
            log.log(level, "node %d at %s: %s", self._node_id, address, trouble)
        elif self._trouble and not trouble:
            log.info("node %d can be reached again", self._node_id)
        self._trouble = trouble

    # snapshots

    def _send_snapshot(self, message: InstallSnapshot) -> None:
        """One at a time: asked again while one is under way, it is the same or will be asked for again."""
        address = self._address_of(self._node_id)
        if address and (self._snapshot is None or self._snapshot.done()):
            self._snapshot = asyncio.create_task(self._stream_snapshot(message, address))

    async def _stream_snapshot(self, message: InstallSnapshot, address: str) -> None:
        stub = QuorumStub(self._channels.to(address))
        try:
            await stub.SendSnapshot(self._snapshot_frames(message), timeout=SNAPSHOT_SECONDS_MAX)
        except grpc.aio.AioRpcError as error:
            log.warning("the snapshot did not reach node %d at %s: %s", self._node_id, address, _reason(error))

    async def _snapshot_frames(self, message: InstallSnapshot) -> AsyncIterator[pb.SnapshotFrame]:
        yield pb.SnapshotFrame(hello=hello_to(self._node_id, self._own))
        for frame in snapshot_frames(message):
            yield frame


def _is_cancelled() -> bool:
    """Somebody cancelled this very task: a node that fails ends all of them, and waits for that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _reason(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return error.details() or error.code().name
    return "does not answer" if isinstance(error, TimeoutError) else "the stream broke"
