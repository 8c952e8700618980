"""Requests made of bytes: as many elements as an attacker likes, faster than any client library would make them."""

import struct

from support.frames import framed

__all__ = ["fetch", "header", "list_offsets", "metadata", "text"]


def header(key: int, version: int, *, correlation_id: int = 1) -> bytes:
    """Of a version that is not flexible, without a client id."""
    return struct.pack(">hhih", key, version, correlation_id, -1)


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def fetch(topic: str, *, wait_ms: int, bytes_min: int, bytes_max: int, partitions: int = 1) -> bytes:
    parts = b"".join(struct.pack(">iqi", index, 0, bytes_max) for index in range(partitions))
    body = struct.pack(">iiiibi", -1, wait_ms, bytes_min, bytes_max, 0, 1) + text(topic)
    return framed(header(1, 4) + body + struct.pack(">i", partitions) + parts)


def list_offsets(topic: str, *, partitions: int, timestamp: int = -1) -> bytes:
    parts = b"".join(struct.pack(">iq", index, timestamp) for index in range(partitions))
    return framed(header(2, 1) + struct.pack(">ii", -1, 1) + text(topic) + struct.pack(">i", partitions) + parts)


def metadata(names: list[str]) -> bytes:
    """Version 4, which makes no topics here."""
    return framed(header(3, 4) + struct.pack(">i", len(names)) + b"".join(map(text, names)) + b"\0")
