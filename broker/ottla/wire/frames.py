"""Frames out of a byte stream: a 4-byte length, then that many bytes. Pure.

The transport writes into `free_space()`, `received(n)` says how much arrived, `next_frame()` gives views that are valid
until `settle()`, which must be called when no more frames are taken for now. Bytes arrive in one buffer that all
connections of a loop share; only an unfinished frame lies in a buffer of its own, so that an idle connection holds no
memory. That buffer grows as bytes really arrive, never because a length claims them.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.wire.reader import Malformed

__all__ = ["READ_AHEAD_BUFFERS", "FrameBuffer", "FrameLimits", "ReceiveBuffers"]

SIZE_BYTES = 4
KEY_BYTES = 2  # of the API, at the beginning of every request
SHARED_BYTES = 64 * 1024
OWN_BYTES_MIN = 4 * 1024
KEPT_BYTES_MIN, KEPT_BYTES_MAX = 256 * 1024, 2 * 1024 * 1024
KEPT_MAX = 4
READ_AHEAD_BYTES, READ_AHEAD_BUFFERS = 5 << 18, 2  # for frames of a megabyte and what comes behind them


class ReceiveBuffers:
    """What the connections of one loop share: the buffer where bytes arrive, and a few large ones for reuse."""

    def __init__(self, *, shared_bytes: int = SHARED_BYTES) -> None:
        self.shared = memoryview(bytearray(shared_bytes))
        # No memory until they are used. With room for more than one frame, a read brings several: with frames of
        # 100 KB, a read for each of them that ends where the frame ends cost a quarter of the broker's CPU.
        self._kept = [bytearray(READ_AHEAD_BYTES) for _ in range(READ_AHEAD_BUFFERS)]

    def take(self, size: int, *, wanted: int) -> bytearray:
        """At least `size` bytes; `wanted` when a kept buffer has them: its pages are in memory already."""
        for number, kept in enumerate(self._kept):
            if len(kept) >= wanted:
                return self._kept.pop(number)
        return bytearray(size)

    def give_back(self, buffer: bytearray) -> None:
        if len(self._kept) < KEPT_MAX and KEPT_BYTES_MIN <= len(buffer) <= KEPT_BYTES_MAX:
            self._kept.append(buffer)


def _nature(first: memoryview) -> str:
    """What the first bytes are when they are no frame: a size out of bounds, or another protocol."""
    begin = bytes(first)
    size = f"frame of {int.from_bytes(begin, 'big', signed=True)} bytes"
    if begin[:2] == b"\x16\x03":
        return f"{size}, which is the beginning of TLS (security.protocol=SSL) at a listener without TLS"
    if begin in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"):
        return f"{size}, which is the beginning of an HTTP request"
    if begin == b"PRI ":
        return f"{size}, which is the beginning of HTTP/2 or gRPC (gRPC has a port of its own: ottla.grpc.port)"
    return size


class FrameLimits(NamedTuple):
    """Smaller frames than `least_bytes` are all right; `check` raises Malformed for (API key, size) beyond a limit."""

    least_bytes: int
    check: Callable[[int, int], None]


class FrameBuffer:
    """Invariant: 0 <= start <= end <= len(view); unread bytes are view[start:end]. `own` is None: view is shared."""

    __slots__ = ("_buffers", "_end", "_frame_bytes_max", "_limits", "_own", "_start", "_unlimited_bytes_max", "_view")

    def __init__(
        self, *, frame_bytes_max: int, buffers: ReceiveBuffers | None = None, limits: FrameLimits | None = None
    ) -> None:
        self.set_limits(frame_bytes_max, limits)
        self._buffers = buffers or ReceiveBuffers()
        self._own: bytearray | None = None
        self._view = self._buffers.shared
        self._start = 0
        self._end = 0

    def set_limits(self, frame_bytes_max: int, limits: FrameLimits | None) -> None:
        """From the next frame on."""
        self._frame_bytes_max = frame_bytes_max
        self._limits = limits
        self._unlimited_bytes_max = frame_bytes_max if limits is None else min(frame_bytes_max, limits.least_bytes)

    @property
    def unread_bytes(self) -> int:
        return self._end - self._start

    @property
    def begun_bytes(self) -> int:
        """What the unread bytes are the beginning of: the claimed size of a frame with its length, 0 when unknown.

        A claim is not known before it can be checked against its API's limit.
        """
        if self._end - self._start < SIZE_BYTES + KEY_BYTES:
            return 0
        return SIZE_BYTES + int.from_bytes(self._view[self._start : self._start + SIZE_BYTES], "big")

    def free_space(self) -> memoryview:
        """Where the next bytes go; in a buffer that is larger than the frame under way also what comes behind it."""
        if self._own is None:
            return self._view
        if self._end == len(self._own) or (self._start and self._start == self._end):
            self._move()
        return self._view[self._end :]

    def received(self, count: int) -> None:
        self._end += count

    def frames(self) -> Iterator[memoryview]:
        """Every whole frame, without its length. Raises Malformed for a length out of bounds."""
        while (frame := self.next_frame()) is not None:
            yield frame
        self.settle()

    def next_frame(self) -> memoryview | None:
        start = self._start
        if self._end - start < SIZE_BYTES:
            return None
        size = int.from_bytes(self._view[start : start + SIZE_BYTES], "big", signed=True)
        if not 0 <= size <= self._unlimited_bytes_max:
            self._check(size)
        end = start + SIZE_BYTES + size
        if end > self._end:
            return None
        self._start = end
        return self._view[start + SIZE_BYTES : end]

    def _check(self, size: int) -> None:
        start = self._start
        if not 0 <= size <= self._frame_bytes_max:
            raise Malformed(f"{_nature(self._view[start : start + 4])}, allowed are 0 to {self._frame_bytes_max}")
        key_at = start + SIZE_BYTES
        if self._limits is not None and self._end - key_at >= KEY_BYTES:
            self._limits.check(int.from_bytes(self._view[key_at : key_at + KEY_BYTES], "big"), size)

    def put_back(self, frame: memoryview) -> None:
        """The frame that `next_frame` gave last is to come again."""
        self._start -= SIZE_BYTES + len(frame)

    def settle(self) -> None:
        """The frames given so far are done with: leave the shared buffer to others."""
        if self._start == self._end:
            self._release()
        elif self._own is None:
            self._move()

    def close(self) -> None:
        self._start = self._end = 0
        self._release()

    def _release(self) -> None:
        if self._own is not None:
            self._buffers.give_back(self._own)
            self._own = None
            self._view = self._buffers.shared
        self._start = self._end = 0

    def _move(self) -> None:
        """The unread bytes into a larger buffer of their own: twice as many, but not more than the frame needs."""
        unread = self._view[self._start : self._end]
        wanted = max(self.begun_bytes, len(unread) + 1, SIZE_BYTES + KEY_BYTES)
        larger = self._buffers.take(min(wanted, max(2 * len(unread), OWN_BYTES_MIN)), wanted=wanted)
        larger[: len(unread)] = unread
        if self._own is not None:
            self._buffers.give_back(self._own)
        self._own, self._view = larger, memoryview(larger)
        self._start, self._end = 0, len(unread)
