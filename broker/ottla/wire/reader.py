"""Requests from bytes: a reader compiled from a message's schema. Pure.

kio's own reader allocates an array before it checks whether its elements can be there, and refuses unknown tagged
fields where Kafka skips them; checking both before calling it costs as much as reading. So requests are read here,
over kio's schemas, and tests hold the two readers against each other.

A message is an object with the fields of its version; fields that only the newest version has carry their defaults,
so that a handler is written once. Times are integers in milliseconds, ids are 16 raw bytes or None. `records` fields
are views into the frame: valid until the handler returns or awaits.

A reader may have a limit of elements: what a frame claims is counted before it is read.
"""

import struct as packing
from collections.abc import Callable
from typing import Any

import msgspec

from ottla.wire.schema import FIXED_SIZE_CODES, Field, Struct

__all__ = ["Malformed", "Tally", "TooMany", "bounded", "read_uvarint", "reader_of"]

Read = Callable[[memoryview, int], tuple[Any, int]]
NO_ID = bytes(16)
TEXT_BYTES_MAX = 1 << 20  # names have at most 32,767: a text of megabytes is decoded on the loop and kept by nobody
NULLABLE_KINDS = ("string", "bytes", "records")


class Malformed(ValueError):
    """The bytes are not the message they claim to be; says where and why."""


class TooMany(ValueError):
    """The request has more elements than a reader takes."""


class Tally:
    """Elements of one message, of arrays at any depth and of tagged fields."""

    __slots__ = ("_count", "elements_max")

    def __init__(self, elements_max: int) -> None:
        self.elements_max = elements_max
        self._count = 0

    def begin(self) -> None:
        self._count = 0

    def add(self, count: int) -> None:
        self._count += count
        if self._count > self.elements_max:
            raise TooMany(f"more than {self.elements_max} elements (ottla.request.elements.max)")


def bounded(read: Read, tally: Tally) -> Read:
    """A reader whose `tally` begins with every message. Not for two threads at once."""

    def read_bounded(view: memoryview, position: int) -> tuple[Any, int]:
        tally.begin()
        return read(view, position)

    return read_bounded


def reader_of(struct: Struct, newest: Struct, tally: Tally | None = None) -> Read:
    """A function (view, position) → (message, position after it). Raises Malformed, struct.error or IndexError.

    With a `tally`, which has to begin with every message (see `bounded`), also TooMany.
    """
    made = _message_type(struct, newest)
    newest_fields = {field.name: field for field in newest.fields}
    plain = [_field_reader(field, newest_fields, tally) for field in struct.plain_fields]
    tagged = {field.tag: (field.name, _field_reader(field, newest_fields, tally)) for field in struct.tagged_fields}

    def read(view: memoryview, position: int) -> tuple[Any, int]:
        values: list[Any] = []
        for read_field in plain:
            value, position = read_field(view, position)
            values.append(value)
        return made(*values), position

    def read_flexible(view: memoryview, position: int) -> tuple[Any, int]:
        values: list[Any] = []
        for read_field in plain:
            value, position = read_field(view, position)
            values.append(value)
        message = made(*values)
        if view[position]:
            position = _read_tags(view, position, tagged, message, tally)
        else:
            position += 1
        return message, position

    return read_flexible if struct.flexible else read


def _message_type(struct: Struct, newest: Struct) -> type[Any]:
    """Its own plain fields by position, then those with defaults: its tagged ones, and what newer versions have.

    gc=False: requests have no cycles, and a large one would otherwise keep the collector busy.
    """
    plain = [field.name for field in struct.plain_fields]
    others = {field.name: _default(field) for field in (*newest.fields, *struct.tagged_fields)}
    rest = [(name, Any, default) for name, default in others.items() if name not in plain]
    return msgspec.defstruct(struct.name, [*((name, Any) for name in plain), *rest], gc=False, eq=False)


def _read_tags(
    view: memoryview, position: int, tagged: dict[Any, tuple[str, Read]], message: Any, tally: Tally | None
) -> int:
    count, position = read_uvarint(view, position)
    _check(count, 2, view, position, tally)
    for _ in range(count):
        tag, position = read_uvarint(view, position)
        size, position = read_uvarint(view, position)
        end = position + size
        if end > len(view):
            raise Malformed(f"tagged field {tag} claims {size} bytes, {len(view) - position} remain")
        if tag in tagged:
            name, read_field = tagged[tag]
            value, used = read_field(view[:end], position)
            setattr(message, name, value)
            if used != end:
                raise Malformed(f"tagged field {tag} ({name}) has {end - used} bytes too many")
        position = end
    return position


def _default(field: Field) -> Any:
    if field.struct and not field.is_array and not field.nullable:
        fields = [(each.name, Any, _default(each)) for each in field.struct.fields]
        return msgspec.defstruct(field.struct.name, fields, frozen=True)()
    return field.default


def _field_reader(field: Field, newest_fields: dict[str, Field], tally: Tally | None) -> Read:
    if field.kind == "struct":
        assert field.struct is not None
        newest = newest_fields.get(field.name, field).struct or field.struct
        one = reader_of(field.struct, newest, tally)
        if field.nullable and not field.is_array:
            one = _nullable_struct(one)
    else:
        one = PRIMITIVES.get(field.kind) or VARIABLE[field.kind, field.flexible]
    if field.is_array:
        if field.kind in NULLABLE_KINDS:
            one = _never_null(one, field.name)
        one = _array(one, size_min=_size_min(field), flexible=field.flexible, tally=tally)
    if field.nullable or not (field.is_array or field.kind in NULLABLE_KINDS):
        return one
    return _never_null(one, field.name)


def _never_null(read_one: Read, name: str) -> Read:
    """Handlers rely on what the schema says: a null where it has none is refused, as in Kafka."""

    def read(view: memoryview, position: int) -> tuple[Any, int]:
        value, end = read_one(view, position)
        if value is None:
            raise Malformed(f"{name} is null at {position}")
        return value, end

    return read


def _array(read_one: Read, *, size_min: int, flexible: bool, tally: Tally | None) -> Read:
    def read(view: memoryview, position: int) -> tuple[Any, int]:
        if flexible:
            count, position = read_uvarint(view, position)
            count -= 1
        else:
            (count,) = INT32(view, position)
            position += 4
        if count < 0:
            return None, position
        _check(count, size_min, view, position, tally)
        items = []
        for _ in range(count):
            item, position = read_one(view, position)
            items.append(item)
        return items, position

    return read


def _check(count: int, size_min: int, view: memoryview, position: int, tally: Tally | None) -> None:
    """An array may only claim as many elements as the remaining bytes can hold, and as the limit allows."""
    if count * size_min > len(view) - position:
        raise Malformed(f"array claims {count} elements, {len(view) - position} bytes remain")
    if tally is not None:
        tally.add(count)


def _size_min(field: Field) -> int:
    """The fewest bytes one element of this array can take."""
    if field.struct is None:
        return SIZES.get(field.kind, 1)
    return max(1, sum(SIZES.get(f.kind, 1) if not f.is_array else 1 for f in field.struct.plain_fields))


def _nullable_struct(read_struct: Read) -> Read:
    def read(view: memoryview, position: int) -> tuple[Any, int]:
        if view[position] == 0xFF:
            return None, position + 1
        return read_struct(view, position + 1)

    return read


INT32 = packing.Struct(">i").unpack_from
INT16 = packing.Struct(">h").unpack_from
SIZES = {"int8": 1, "bool": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8, "uuid": 16}


def read_uvarint(view: memoryview, position: int) -> tuple[int, int]:
    byte = view[position]
    if byte < 0x80:
        return byte, position + 1
    value, shift = byte & 0x7F, 7
    while True:
        position += 1
        byte = view[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise Malformed("variable-length number longer than 5 bytes")
    if value > 0xFFFFFFFF:
        raise Malformed("variable-length number over 32 bits")
    return value, position + 1


def _fixed(code: str) -> Read:
    unpack, size = packing.Struct(code).unpack_from, packing.calcsize(code)

    def read(view: memoryview, position: int) -> tuple[Any, int]:
        return unpack(view, position)[0], position + size

    return read


def _read_uuid(view: memoryview, position: int) -> tuple[Any, int]:
    value, position = _take(view, position, 16)
    raw = bytes(value)
    return (None if raw == NO_ID else raw), position


def _take(view: memoryview, position: int, size: int) -> tuple[memoryview, int]:
    end = position + size
    if end > len(view):
        raise Malformed(f"{size} bytes expected at {position}, {len(view) - position} remain")
    return view[position:end], end


def _sized(read_size: Callable[[memoryview, int], tuple[int, int]], convert: Callable[[memoryview], Any]) -> Read:
    def read(view: memoryview, position: int) -> tuple[Any, int]:
        size, position = read_size(view, position)
        if size < 0:
            return None, position
        value, position = _take(view, position, size)
        return convert(value), position

    return read


def _compact_size(view: memoryview, position: int) -> tuple[int, int]:
    size, position = read_uvarint(view, position)
    return size - 1, position


def _size16(view: memoryview, position: int) -> tuple[int, int]:
    return INT16(view, position)[0], position + 2


def _size32(view: memoryview, position: int) -> tuple[int, int]:
    return INT32(view, position)[0], position + 4


def _text(view: memoryview) -> str:
    if len(view) > TEXT_BYTES_MAX:
        raise Malformed(f"a text of {len(view)} bytes, allowed are {TEXT_BYTES_MAX}")
    return str(view, "utf-8")


PRIMITIVES: dict[str, Read] = {**{kind: _fixed(code) for kind, code in FIXED_SIZE_CODES.items()}, "uuid": _read_uuid}
VARIABLE: dict[tuple[str, bool], Read] = {
    ("string", True): _sized(_compact_size, _text),
    ("string", False): _sized(_size16, _text),
    ("bytes", True): _sized(_compact_size, bytes),
    ("bytes", False): _sized(_size32, bytes),
    ("records", True): _sized(_compact_size, lambda view: view),
    ("records", False): _sized(_size32, lambda view: view),
}
