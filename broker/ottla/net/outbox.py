"""The sending side of a connection: answers go out in pieces, and what lies in files is read when it can be sent."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from ottla.net.memory import AnswerMemory
from ottla.net.turns import Turns
from ottla.ports import Buffer, Part, Region
from ottla.system import Threads

__all__ = ["Outbox"]

PIECE_BYTES_MAX = 1024 * 1024  # given to the transport at once
SCARCE_PIECE_BYTES_MAX = 64 * 1024  # the same while memory is scarce: so much may lie unread for each client
SMALL_BYTES_MAX = 64 * 1024  # an answer that does not wait for its turn
WRITE_BUFFER_BYTES_MAX = 64 * 1024  # in the transport before it counts as stalled
PARTS_MAX = 64  # in one write; more are joined
BUFFER_TYPES = (bytes, memoryview, bytearray)


def _nothing(*_: object) -> None:
    pass


class Outbox:
    """`drained` is called when the client has taken what it had left; `failed` with the reason nothing more can go out.

    Invariant: `held_bytes` is what lies in memory for this client, here and in a transport that is stalled.
    """

    __slots__ = ("_drained", "_failed", "_first_sent", "_memory", "_parts", "_piece_bytes", "_reading", "_threads",
                 "_transport", "_transport_bytes", "_turns", "held_bytes", "is_writable")  # fmt: skip

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        threads: Threads,
        memory: AnswerMemory,
        turns: Turns,
        drained: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        self._transport = transport
        self._threads = threads
        self._memory = memory
        self._turns = turns
        self._drained = drained
        self._failed = failed
        self._parts: deque[Part] = deque()
        self._first_sent = 0  # bytes of the first part that are sent; only of a region
        self._reading: asyncio.Future[bytes] | None = None  # a piece of the first part, from the disk
        self._transport_bytes = 0
        self._piece_bytes = 0
        self.is_writable = True
        self.held_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Everything went out, and the client keeps up."""
        return not self._parts and self.is_writable

    def send(self, parts: Sequence[Part]) -> None:
        """One answer, or several, behind those before."""
        in_memory = [part for part in parts if isinstance(part, BUFFER_TYPES)]
        size = sum(map(len, in_memory))
        plain = len(in_memory) == len(parts) and size <= PIECE_BYTES_MAX
        if plain and len(parts) > PARTS_MAX:
            parts = in_memory = [b"".join(in_memory)]
        if plain and not self._parts and self.is_writable:
            self._transport.writelines(in_memory)
        else:
            is_small = not self._parts and sum(map(len, parts)) <= SMALL_BYTES_MAX
            self._parts.extend(parts)
            self._hold(size)
            self._pump(out_of_turn=is_small)

    def _pump(self, *, out_of_turn: bool = False) -> None:
        """Send as much as the client takes."""
        while self._parts and self.is_writable and self._reading is None and not self._transport.is_closing():
            if self._turns.is_over and not out_of_turn:
                self._turns.wait(self._go_on)
                return
            piece, size = self._gather(SCARCE_PIECE_BYTES_MAX if self._memory.is_scarce else PIECE_BYTES_MAX)
            if piece and not self._transport.is_closing():
                self._transport.writelines(piece if len(piece) <= PARTS_MAX else [b"".join(piece)])
                self._turns.spend(size)
                self._piece_bytes = size

    def paused(self) -> None:
        """By the transport: it holds more than it should."""
        self.is_writable = False
        # What is left of a piece keeps the whole buffer that the piece was read into.
        self._note_transport(max(self._transport.get_write_buffer_size(), self._piece_bytes))
        self._memory.stalled(self)

    def resumed(self) -> None:
        self.is_writable = True
        self._note_transport(0)
        self._memory.flowing(self)
        self._go_on()

    def abort(self, reason: str) -> None:
        self._failed(reason)
        self.close()

    def close(self) -> None:
        """Nothing more goes out, and nobody is called any more.

        The callbacks are the connection's, which has this outbox: kept, they would leave every lost connection to the
        collector, which may take an hour to come by.
        """
        self._drained, self._failed = _nothing, _nothing
        self._parts.clear()
        if self._reading is not None:
            self._reading.cancel()
        self._memory.flowing(self)
        self._hold(-self.held_bytes)
        self._transport_bytes = 0

    def _go_on(self) -> None:
        self._pump()
        if self.is_empty and not self._transport.is_closing():
            self._drained()

    def _gather(self, size_max: int) -> tuple[list[Buffer], int]:
        """The next piece, and its size; nothing when the disk has to be asked for it."""
        piece: list[Buffer] = []
        room = size_max
        taken = 0  # and not accounted for yet: once for all, where an answer has very many small parts
        while self._parts and room > 0:
            part = self._parts[0]
            if isinstance(part, BUFFER_TYPES):
                self._parts.popleft()
                taken += len(part)
                data: Buffer = part
            else:
                self._hold(-taken)  # reading may end in `close`
                taken = 0
                found = self._read(part, room)
                if found is None:
                    if not piece:
                        self._read_cold(part, room)
                    break
                data = found
            piece.append(data)
            room -= len(data)
        self._hold(-taken)
        return piece, size_max - room

    def _read(self, region: Region, room: int) -> Buffer | None:
        size = min(len(region) - self._first_sent, room)
        try:
            data = region.read_now(self._first_sent, size)
        except OSError as error:
            self._disk_failed(region, error)
            return b""
        if data is not None:
            self._took(region, size, data)
        return data

    def _read_cold(self, region: Region, room: int) -> None:
        size = min(len(region) - self._first_sent, room)
        self._reading = self._threads.run(region.read, self._first_sent, size)
        self._reading.add_done_callback(lambda done: self._have_read(region, size, done))

    def _have_read(self, region: Region, size: int, done: "asyncio.Future[bytes]") -> None:
        self._reading = None
        if done.cancelled() or self._transport.is_closing():
            return
        error = done.exception()
        if isinstance(error, OSError):
            self._disk_failed(region, error)
        elif error is not None:
            self.abort(f"reading its answer failed: {error!r}")
        else:
            self._took(region, size, done.result())
            if not self._transport.is_closing():
                self._transport.write(done.result())
                self._go_on()

    def _took(self, region: Region, size: int, data: Buffer) -> None:
        if len(data) < size:
            self.abort("the log was cut while it was sent")
            return
        self._first_sent += size
        if self._first_sent == len(region):
            self._parts.popleft()
            self._first_sent = 0

    def _disk_failed(self, region: Region, error: OSError) -> None:
        region.failed(error)
        self.abort(f"reading its answer failed: {error}")

    def _note_transport(self, size: int) -> None:
        by_bytes = size - self._transport_bytes
        self._transport_bytes = size
        self._hold(by_bytes)

    def _hold(self, by_bytes: int) -> None:
        if by_bytes:
            self.held_bytes += by_bytes
            self._memory.change(by_bytes)
