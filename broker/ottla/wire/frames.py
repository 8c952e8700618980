"""Frames out of a byte stream: a 4-byte length, then that many bytes. Pure.

One reused buffer per connection: the transport writes into `room()`, `received(n)` says how much arrived, and
`frames()` yields views into the buffer that are valid until the next call. The buffer grows as bytes really arrive,
never because a length claims them, and shrinks again after a large frame.
"""

from collections.abc import Iterator

from ottla.wire.reader import Malformed

__all__ = ["FrameBuffer"]

SIZE_BYTES = 4
ROOM_BYTES_MIN = 16 * 1024


class FrameBuffer:
    """Invariant: 0 <= start <= end <= len(buffer); unread bytes are buffer[start:end]."""

    def __init__(self, *, frame_bytes_max: int, buffer_bytes: int = 64 * 1024) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer_bytes = buffer_bytes
        self._replace(bytearray(buffer_bytes))
        self._start = 0
        self._end = 0

    def _replace(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)

    @property
    def unread_bytes(self) -> int:
        return self._end - self._start

    def room(self) -> memoryview:
        """Where the next bytes go: at least ROOM_BYTES_MIN."""
        if self._start == self._end:
            self._start = self._end = 0
            if len(self._buffer) > 8 * self._buffer_bytes and not self._large:
                self._replace(bytearray(self._buffer_bytes))
            self._large = False
        if len(self._buffer) - self._end < max(ROOM_BYTES_MIN, self._missing_bytes()):
            self._make_room()
        return self._view[self._end :]

    _large = False

    def _missing_bytes(self) -> int:
        """How much of the frame under way is still to come, as far as we are ready to believe its length."""
        if self.unread_bytes < SIZE_BYTES:
            return 0
        size = int.from_bytes(self._view[self._start : self._start + SIZE_BYTES], "big")
        return min(SIZE_BYTES + size - self.unread_bytes, self.unread_bytes + ROOM_BYTES_MIN)

    def _make_room(self) -> None:
        unread = self._view[self._start : self._end]
        needed = len(unread) + max(ROOM_BYTES_MIN, self._missing_bytes())
        if needed <= len(self._buffer):
            self._view[: len(unread)] = unread  # memmove: overlapping is fine
        else:
            larger = bytearray(max(needed, 2 * len(self._buffer)))
            larger[: len(unread)] = unread
            self._replace(larger)
        self._start, self._end = 0, len(unread)

    def received(self, count: int) -> None:
        self._end += count

    def frames(self) -> Iterator[memoryview]:
        """Every whole frame, without its length. Raises Malformed for a length out of bounds."""
        while (frame := self.next_frame()) is not None:
            yield frame

    def next_frame(self) -> memoryview | None:
        start = self._start
        if self._end - start < SIZE_BYTES:
            return None
        size = int.from_bytes(self._view[start : start + SIZE_BYTES], "big", signed=True)
        if not 0 <= size <= self._frame_bytes_max:
            raise Malformed(f"frame of {size} bytes, allowed are 0 to {self._frame_bytes_max}")
        end = start + SIZE_BYTES + size
        if end > self._end:
            return None
        self._start = end
        if size > self._buffer_bytes:
            self._large = True
        return self._view[start + SIZE_BYTES : end]
