"""A pool of buffers for what is read from files: one is used again as soon as no view of it is left.

A fresh megabyte for every read costs page faults, and copying it out of one that is kept costs as much as reading it.
"""

import threading

__all__ = ["take"]

BUFFER_BYTES = 1 << 20  # what clients ask for per partition by default
BUFFERS_MAX = 8  # of each thread
SMALL_BYTES = 4 << 10

_local = threading.local()


def take(size: int) -> memoryview:
    """So many bytes with anything in them, the caller's for as long as the view or a part of it lives."""
    if not SMALL_BYTES <= size <= BUFFER_BYTES:
        return memoryview(bytearray(size))
    pool: list[bytearray] = _local.__dict__.setdefault("pool", [])
    buffer = next(filter(_is_free, pool), None)
    if buffer is None:
        if len(pool) == BUFFERS_MAX:
            return memoryview(bytearray(size))
        buffer = bytearray(BUFFER_BYTES)
        pool.append(buffer)
    return memoryview(buffer)[:size]


def _is_free(buffer: bytearray) -> bool:
    """Python lets no array change its size while there is a view of it."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True
