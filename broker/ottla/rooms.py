"""Room for what is read from files, used again as soon as nobody looks at it any more.

A fresh megabyte for every read costs page faults, and copying it out of one that is kept costs as much as reading it.
"""

import threading

__all__ = ["take"]

ROOM_BYTES = 1 << 20  # what clients ask for per partition by default
ROOMS_MAX = 8
SMALL_BYTES = 4 << 10

_local = threading.local()


def take(size: int) -> memoryview:
    """So many bytes with anything in them, the caller's for as long as the view or a part of it lives."""
    if not SMALL_BYTES <= size <= ROOM_BYTES:
        return memoryview(bytearray(size))
    rooms: list[bytearray] = _local.__dict__.setdefault("rooms", [])
    room = next(filter(_is_free, rooms), None)
    if room is None:
        if len(rooms) == ROOMS_MAX:
            return memoryview(bytearray(size))
        room = bytearray(ROOM_BYTES)
        rooms.append(room)
    return memoryview(room)[:size]


def _is_free(room: bytearray) -> bool:
    """Python lets no array change its size while there is a view of it."""
    try:
        room.append(0)
    except BufferError:
        return False
    room.pop()
    return True
