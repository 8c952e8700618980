"""Responses to bytes: a writer compiled from a message's schema. Pure.

A response is given as keyword fields, nested structs as dicts. Fields that a version lacks are dropped and fields not
given take the schema's default, so that a handler is written once for all versions. Tests hold the bytes against kio.
"""

import struct as packing
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.wire.schema import FIXED_SIZE_CODES, Field, Struct
from ottla.wire.text_limits import cut

__all__ = ["EncodedArray", "array_head", "element_writer_of", "text", "uvarint", "writer_of"]

Write = Callable[[list[bytes], Any], None]
NO_ID = bytes(16)
OUR_OWN_WORDS = "error_message"


@dataclass(slots=True, frozen=True)
class EncodedArray:
    """Stands for an array whose elements are encoded already, by `element_writer_of`."""

    count: int
    chunks: Sequence[bytes]


def element_writer_of(struct: Struct, path: Sequence[str]) -> Write:
    """Writes one element of the array that is reached by these field names."""
    for name in path:
        field = next(field for field in struct.fields if field.name == name)
        assert field.is_array and field.struct is not None, f"{name} is no array of structs"
        struct = field.struct
    return writer_of(struct)


def writer_of(struct: Struct) -> Callable[[list[bytes], Mapping[str, Any]], None]:
    """A function (parts, values) that appends the encoded struct to `parts`."""
    plain = [(field.name, field.default, _field_writer(field)) for field in struct.plain_fields]
    tagged = [(f.tag or 0, f.name, f.default, _field_writer(f)) for f in struct.tagged_fields]

    def write(parts: list[bytes], values: Mapping[str, Any]) -> None:
        for name, default, write_field in plain:
            write_field(parts, values.get(name, default))
        if struct.flexible:
            _write_tags(parts, values, tagged)

    return write


def _write_tags(parts: list[bytes], values: Mapping[str, Any], tagged: list[tuple[int, str, Any, Write]]) -> None:
    present = [(tag, name, write) for tag, name, default, write in tagged if values.get(name, default) != default]
    parts.append(uvarint(len(present)))
    for tag, name, write in present:
        content: list[bytes] = []
        write(content, values[name])
        parts += (uvarint(tag), uvarint(sum(map(len, content))), *content)


def uvarint(value: int) -> bytes:
    if value < 0x80:
        return SMALL[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def array_head(count: int, *, flexible: bool) -> bytes:
    return uvarint(count + 1) if flexible else INT32(count)


def text(value: str | None, *, flexible: bool) -> bytes:
    if value is None:
        return b"\0" if flexible else b"\xff\xff"
    data = value.encode()
    return (uvarint(len(data) + 1) if flexible else INT16(len(data))) + data


SMALL = [bytes((value,)) for value in range(0x80)]


def _field_writer(field: Field) -> Write:
    if field.struct is not None:
        one: Write = writer_of(field.struct)
        if field.nullable and not field.is_array:
            one = _nullable_struct(one)
    elif field.name == OUR_OWN_WORDS and not field.flexible:
        one = _legacy_message
    else:
        one = PRIMITIVES.get(field.kind) or (_compact if field.flexible else LEGACY[field.kind])
    return _array(one, flexible=field.flexible) if field.is_array else one


def _array(write_one: Write, *, flexible: bool) -> Write:
    def write(parts: list[bytes], items: Any) -> None:
        if items is None:
            parts.append(b"\0" if flexible else b"\xff\xff\xff\xff")
            return
        if isinstance(items, EncodedArray):
            parts += (array_head(items.count, flexible=flexible), *items.chunks)
            return
        parts.append(array_head(len(items), flexible=flexible))
        for item in items:
            write_one(parts, item)

    return write


def _nullable_struct(write_struct: Write) -> Write:
    def write(parts: list[bytes], value: Any) -> None:
        if value is None:
            parts.append(b"\xff")
        else:
            parts.append(b"\x01")
            write_struct(parts, value)

    return write


INT16 = packing.Struct(">h").pack
INT32 = packing.Struct(">i").pack


def _fixed(code: str) -> Write:
    pack = packing.Struct(code).pack
    return lambda parts, value: parts.append(pack(value))


def _uuid(parts: list[bytes], value: bytes | uuid.UUID | None) -> None:
    parts.append(value.bytes if isinstance(value, uuid.UUID) else value or NO_ID)


def _compact(parts: list[bytes], value: str | bytes | None) -> None:
    if value is None:
        parts.append(b"\0")
        return
    data = value.encode() if isinstance(value, str) else value
    parts += (uvarint(len(data) + 1), data)


def _legacy(pack_size: Callable[[int], bytes]) -> Write:
    def write(parts: list[bytes], value: str | bytes | None) -> None:
        if value is None:
            parts.append(pack_size(-1))
            return
        data = value.encode() if isinstance(value, str) else value
        parts += (pack_size(len(data)), data)

    return write


def _legacy_message(parts: list[bytes], value: str | None) -> None:
    """A message may quote a name that is as long as a text can be: rather the beginning of it than no answer."""
    LEGACY["string"](parts, None if value is None else cut(value.encode()))


PRIMITIVES: dict[str, Write] = {**{kind: _fixed(code) for kind, code in FIXED_SIZE_CODES.items()}, "uuid": _uuid}
LEGACY: dict[str, Write] = {"string": _legacy(INT16), "bytes": _legacy(INT32), "records": _legacy(INT32)}
