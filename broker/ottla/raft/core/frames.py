"""Entries and snapshots as bytes. Pure.

An entry: magic, length, CRC-32C, then index, term, the last entry known to be synced when it was written, kind, data.
The synced index lets recovery tell a torn tail, which was never acknowledged, from damage to acknowledged entries.
"""

import struct
from collections.abc import Sequence

import msgspec
from crc32c import crc32c

from ottla.errors import Refusal
from ottla.raft.core.messages import Entry, EntryKind, Snapshot, Voters

__all__ = ["Scan", "decode_snapshot", "encode_entry", "encode_snapshot", "scan"]

_MAGIC = b"OtR1"
_HEADER = struct.Struct(">4sII")
_BODY = struct.Struct(">QQQB")
_SNAPSHOT_MAGIC = b"OtS1"


def encode_entry(entry: Entry, *, synced: int) -> bytes:
    body = _BODY.pack(entry.index, entry.term, synced, entry.kind) + entry.data
    return _HEADER.pack(_MAGIC, len(body), crc32c(body)) + body


class Scan(msgspec.Struct, frozen=True):
    """`torn_at`: position of the first bad frame; `lost_synced`: an entry that was synced is damaged."""

    entries: Sequence[Entry]
    positions: list[int]
    torn_at: int | None
    lost_synced: bool


def scan(data: bytes, *, first_index: int) -> Scan:
    entries: list[Entry] = []
    positions: list[int] = []
    position = 0
    while position < len(data):
        frame = _decode(data, position)
        if frame is None or frame[0].index != first_index + len(entries):
            lost = _synced_after(data, position) >= first_index + len(entries)
            return Scan(entries, positions, position, lost)
        entries.append(frame[0])
        positions.append(position)
        position = frame[2]
    return Scan(entries, positions, None, False)


def _decode(data: bytes, position: int) -> tuple[Entry, int, int] | None:
    """The entry, the synced index it carries, and the position of the next frame."""
    body_start = position + _HEADER.size
    if body_start + _BODY.size > len(data):
        return None
    magic, length, checksum = _HEADER.unpack_from(data, position)
    end = body_start + length
    if magic != _MAGIC or length < _BODY.size or end > len(data) or crc32c(data[body_start:end]) != checksum:
        return None
    index, term, synced, kind = _BODY.unpack_from(data, body_start)
    if kind not in EntryKind.__members__.values():
        raise Refusal(f"metadata entry {index} is of kind {kind}, which this version does not know; start a newer one")
    return Entry(index, term, EntryKind(kind), data[body_start + _BODY.size : end]), synced, end


def _synced_after(data: bytes, position: int) -> int:
    """The highest synced index in any whole frame after `position`."""
    highest = 0
    position = data.find(_MAGIC, position + 1)
    while position >= 0:
        frame = _decode(data, position)
        if frame is not None:
            highest = max(highest, frame[1])
        position = data.find(_MAGIC, position + 1)
    return highest


class _SnapshotHeader(msgspec.Struct):
    index: int
    term: int
    voters: Voters


def encode_snapshot(snapshot: Snapshot) -> bytes:
    header = msgspec.json.encode(_SnapshotHeader(snapshot.index, snapshot.term, snapshot.voters))
    body = b"".join([len(header).to_bytes(4, "big"), header, snapshot.data])
    return b"".join([_HEADER.pack(_SNAPSHOT_MAGIC, len(body), crc32c(body)), body])


def decode_snapshot(data: bytes) -> Snapshot | None:
    """None when it is damaged."""
    if len(data) < _HEADER.size + 4:
        return None
    magic, length, checksum = _HEADER.unpack_from(data)
    body = data[_HEADER.size :]
    if magic != _SNAPSHOT_MAGIC or length != len(body) or crc32c(body) != checksum:
        return None
    header_end = 4 + int.from_bytes(body[:4], "big")
    header = msgspec.json.decode(body[4:header_end], type=_SnapshotHeader)
    return Snapshot(header.index, header.term, header.voters, body[header_end:])
