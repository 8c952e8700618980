"""The header of a request."""

import struct

from ottla.api.registry import APIS
from ottla.wire.reader import Malformed, read_uvarint

__all__ = ["REQUEST_HEADER", "client_of", "complaint", "skip_tags"]

REQUEST_HEADER = struct.Struct(">hhih")
"""Key, version, correlation id, and how many bytes the client id has, which follows; -1: none."""

TAGS_MAX = 64
CLIENT_ID_CHARACTERS_MAX = 1_000  # of what is kept and logged; a header may have 32,767


def client_of(frame: memoryview, size: int) -> tuple[str | None, int]:
    """The client id, and what comes behind it."""
    if size < 0:
        return None, REQUEST_HEADER.size
    end = REQUEST_HEADER.size + size
    client_id = str(frame[REQUEST_HEADER.size : end], "utf-8")
    return (client_id if size <= CLIENT_ID_CHARACTERS_MAX else client_id[:CLIENT_ID_CHARACTERS_MAX]), end


def skip_tags(frame: memoryview, position: int) -> int:
    count, position = read_uvarint(frame, position)
    if count > TAGS_MAX:
        raise Malformed(f"{count} tagged fields in the header, at most {TAGS_MAX} are read")
    for _ in range(count):
        _, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
    return position


def complaint(frame: memoryview, error: Exception) -> str:
    """What the log says of a request that cannot be read."""
    if len(frame) < REQUEST_HEADER.size:
        return f"a request of {len(frame)} bytes, its header alone has {REQUEST_HEADER.size}"
    key, version = struct.unpack_from(">hh", frame, 0)
    name = APIS[key].name if key in APIS else f"API {key}"
    return f"{error} in {name} v{version}, {len(frame)} bytes"
