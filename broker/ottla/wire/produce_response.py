"""ProduceResponse by hand: the schema-driven writer costs several times as much on the hottest path. Pure.

Versions: 5 log start offset, 8 record errors and message (KIP-467), 9 flexible, 10 current leader (KIP-951),
13 topic ids (KIP-516).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.ports import Buffer
from ottla.wire.writer import array_head, text, uvarint

__all__ = ["Outcome", "Topics", "encode"]

HEAD = struct.Struct(">ihqq")
HEAD_WITH_START = struct.Struct(">ihqqq")
INT32 = struct.Struct(">i").pack
LEADER = struct.Struct(">ii")


@dataclass(slots=True, eq=False)
class Outcome:
    """What became of one partition's batch. Each is itself, whatever it holds."""

    index: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    message: str | None = None
    record_errors: Sequence[tuple[int, str | None]] = ()
    leader: tuple[int, int] | None = field(default=None)
    """(id, epoch) of the real leader, for a client that came to the wrong broker."""


Topics = Sequence[tuple[str | bytes, Sequence[Outcome]]]
Endpoint = tuple[int, str, int, str | None]


def encode(version: int, topics: Topics, endpoints: Sequence[Endpoint] = (), throttle_ms: int = 0) -> list[Buffer]:
    """The body; a topic is named by its raw id from version 13 on."""
    flexible = version >= 9
    parts: list[bytes] = [array_head(len(topics), flexible=flexible)]
    for topic, outcomes in topics:
        parts.append(topic if isinstance(topic, bytes) else text(topic, flexible=flexible))
        parts.append(array_head(len(outcomes), flexible=flexible))
        for outcome in outcomes:
            _outcome(parts, outcome, version)
        if flexible:
            parts.append(b"\0")
    parts.append(INT32(throttle_ms))
    if flexible:
        parts.append(_endpoint_tag(endpoints) if endpoints and version >= 10 else b"\0")
    return [b"".join(parts)]


def _outcome(parts: list[bytes], outcome: Outcome, version: int) -> None:
    o = outcome
    if version < 5:
        parts.append(HEAD.pack(o.index, o.error_code, o.base_offset, o.log_append_time))
        return
    parts.append(HEAD_WITH_START.pack(o.index, o.error_code, o.base_offset, o.log_append_time, o.log_start_offset))
    if version >= 9:
        _flexible_tail(parts, o, version)
    elif version == 8:
        parts.append(INT32(len(o.record_errors)))
        for position, message in o.record_errors:
            parts += (INT32(position), text(message, flexible=False))
        parts.append(text(o.message, flexible=False))


def _flexible_tail(parts: list[bytes], o: Outcome, version: int) -> None:
    if not o.error_code:
        parts.append(b"\1\0\0")  # no record errors, no message, no tags
        return
    parts.append(uvarint(len(o.record_errors) + 1))
    for position, message in o.record_errors:
        parts += (INT32(position), text(message, flexible=True), b"\0")
    parts.append(text(o.message, flexible=True))
    if o.leader is None or version < 10:
        parts.append(b"\0")
    else:
        parts += (b"\1\0\x09", LEADER.pack(*o.leader), b"\0")


def _endpoint_tag(endpoints: Sequence[Endpoint]) -> bytes:
    content = array_head(len(endpoints), flexible=True) + b"".join(_endpoint(*endpoint) for endpoint in endpoints)
    return b"\1\0" + uvarint(len(content)) + content


def _endpoint(node: int, host: str, port: int, rack: str | None) -> bytes:
    return INT32(node) + text(host, flexible=True) + INT32(port) + text(rack, flexible=True) + b"\0"
