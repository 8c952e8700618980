"""Requests made of bytes: as many elements as an attacker likes, faster than any client library would make them."""

import struct
from collections.abc import Sequence

from support.frames import framed

__all__ = [
    "compact",
    "consumer_heartbeat",
    "fetch",
    "fetch_in_session",
    "header",
    "heartbeat_answer",
    "list_offsets",
    "metadata",
    "text",
    "uvarint",
    "write_txn_markers",
]


def header(key: int, version: int, *, correlation_id: int = 1) -> bytes:
    """Of a version that is not flexible, without a client id."""
    return struct.pack(">hhih", key, version, correlation_id, -1)


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def uvarint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def compact(data: bytes) -> bytes:
    """A string or bytes of a flexible version."""
    return uvarint(len(data) + 1) + data


def consumer_heartbeat(group: str, member: str, epoch: int, names: Sequence[bytes] | None) -> bytes:
    """KIP-848, version 1. One that joins brings its names. The answer: `heartbeat_answer`."""
    topics = b"\0" if names is None else uvarint(len(names) + 1) + b"".join(map(compact, names))
    joining = struct.pack(">i", 60_000) if epoch == 0 else struct.pack(">i", -1)
    owned = b"\1" if epoch == 0 else b"\0"
    body = compact(group.encode()) + compact(member.encode()) + struct.pack(">i", epoch) + b"\0\0" + joining
    return framed(header(68, 1) + b"\0" + body + topics + b"\0\0" + owned + b"\0")


def heartbeat_answer(frame: bytes) -> tuple[int, int, bytes]:
    """Error code, member epoch, and what follows the heartbeat interval: the assignment, 0xff for none."""
    code, position = struct.unpack_from(">h", frame, 9)[0], 11
    if code:
        return code, -1, b""
    for _ in range(2):  # error message and member id; neither is long
        position += max(frame[position], 1)
    epoch, _ = struct.unpack_from(">ii", frame, position)
    return code, epoch, frame[position + 8 :]


def write_txn_markers(topic: str, partitions: int, *, producer_id: int = 1) -> bytes:
    """Version 1: one marker, for the same partition very many times."""
    indexes = uvarint(partitions + 1) + bytes(4 * partitions)
    marker = struct.pack(">qhb", producer_id, 0, 0) + b"\2" + compact(topic.encode()) + indexes + b"\0"
    return framed(header(27, 1) + b"\0\2" + marker + struct.pack(">i", 0) + b"\0\0")


def fetch(
    topic: str, *, wait_ms: int, bytes_min: int, bytes_max: int, partitions: int = 1, committed: bool = False
) -> bytes:
    """From offset 0 on."""
    parts = b"".join(struct.pack(">iqi", index, 0, bytes_max) for index in range(partitions))
    body = struct.pack(">iiiibi", -1, wait_ms, bytes_min, bytes_max, committed, 1) + text(topic)
    return framed(header(1, 4) + body + struct.pack(">i", partitions) + parts)


def fetch_in_session(topic: str, partitions: range, *, session_id: int, epoch: int) -> bytes:
    """Version 7: the answer has a session's id behind its correlation id, throttle time and error code."""
    parts = b"".join(struct.pack(">iqqi", index, 0, -1, 1) for index in partitions)
    topics = struct.pack(">i", 1) + text(topic) + struct.pack(">i", len(partitions)) + parts if partitions else bytes(4)
    return framed(header(1, 7) + struct.pack(">iiiibii", -1, 0, 0, 1, 0, session_id, epoch) + topics + bytes(4))


def list_offsets(topic: str, *, partitions: int, timestamp: int = -1) -> bytes:
    parts = b"".join(struct.pack(">iq", index, timestamp) for index in range(partitions))
    return framed(header(2, 1) + struct.pack(">ii", -1, 1) + text(topic) + struct.pack(">i", partitions) + parts)


def metadata(names: list[str]) -> bytes:
    """Version 4, which makes no topics here."""
    return framed(header(3, 4) + struct.pack(">i", len(names)) + b"".join(map(text, names)) + b"\0")
