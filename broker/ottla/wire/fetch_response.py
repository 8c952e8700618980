"""FetchResponse by hand: record bytes are passed through as they were read, only the heads are made here. Pure.

Versions: 5 log start offset, 7 sessions (KIP-227), 11 preferred read replica (KIP-392), 12 flexible with tagged fields,
13 topic ids (KIP-516), 16 endpoints of current leaders (KIP-951).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.ports import Part
from ottla.wire.chunks import Chunks
from ottla.wire.writer import array_head, text, uvarint

__all__ = ["Fetched", "encode", "encode_joined"]

INT32 = struct.Struct(">i").pack
HEAD = struct.Struct(">ihqq")
HEAD_WITH_START = struct.Struct(">ihqqq")
TOP = struct.Struct(">ihi")
ABORTED = struct.Struct(">qq")


@dataclass(slots=True)
class Fetched:
    """What is answered for one partition."""

    index: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Part = b""
    """Whole batches; or where they are, to be read when they are sent."""
    aborted: Sequence[tuple[int, int]] | None = None
    """(producer id, first offset) of aborted transactions; None for a reader that does not care."""
    preferred_read_replica: int = -1
    diverging: tuple[int, int] | None = None
    """(epoch, end offset) where the reader's log parts from ours."""
    leader: tuple[int, int] | None = None


Topics = Sequence[tuple[str | bytes, Sequence[Fetched]]]


def encode(version: int, *, error_code: int, session_id: int, topics: Topics, throttle_ms: int = 0) -> list[Part]:
    """The body as parts; a topic is named by its raw id from version 13 on."""
    flexible = version >= 12
    head = TOP.pack(throttle_ms, error_code, session_id) if version >= 7 else INT32(throttle_ms)
    parts: list[Part] = [head + array_head(len(topics), flexible=flexible)]
    for topic, answers in topics:
        name = topic if isinstance(topic, bytes) else text(topic, flexible=flexible)
        parts.append(name + array_head(len(answers), flexible=flexible))
        for answer in answers:
            _partition(parts, answer, version)
        if flexible:
            parts.append(b"\0")
    if flexible:
        parts.append(b"\0")
    return parts


def encode_joined(version: int, *, error_code: int, session_id: int, topics: Topics) -> list[Part]:
    """The same for thousands of partitions, in a thread: whoever sends parts handles each of them."""
    chunks = Chunks[Part]()
    chunks.add(encode(version, error_code=error_code, session_id=session_id, topics=topics))
    return chunks.finish()


def _partition(parts: list[Part], a: Fetched, version: int) -> None:
    flexible = version >= 12
    if version >= 5:
        head = HEAD_WITH_START.pack(a.index, a.error_code, a.high_watermark, a.last_stable_offset, a.log_start_offset)
    else:
        head = HEAD.pack(a.index, a.error_code, a.high_watermark, a.last_stable_offset)
    head += _aborted(a.aborted, flexible)
    if version >= 11:
        head += INT32(a.preferred_read_replica)
    parts.append(head + (uvarint(len(a.records) + 1) if flexible else INT32(len(a.records))))
    if len(a.records):
        parts.append(a.records)
    if flexible:
        parts.append(_tags(a))


def _aborted(aborted: Sequence[tuple[int, int]] | None, flexible: bool) -> bytes:
    if aborted is None:
        return b"\0" if flexible else b"\xff\xff\xff\xff"
    end = b"\0" if flexible else b""
    return array_head(len(aborted), flexible=flexible) + b"".join(ABORTED.pack(*entry) + end for entry in aborted)


def _tags(a: Fetched) -> bytes:
    if a.diverging is None and a.leader is None:
        return b"\0"
    tags = []
    if a.diverging is not None:
        tags.append(b"\0\x0d" + struct.pack(">iq", *a.diverging) + b"\0")
    if a.leader is not None:
        tags.append(b"\1\x09" + struct.pack(">ii", *a.leader) + b"\0")
    return uvarint(len(tags)) + b"".join(tags)
