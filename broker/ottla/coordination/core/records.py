"""Records of internal topics: keys and values begin with two bytes of version, then fields by wire.schema. Pure."""

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from ottla.wire.reader import Malformed, Read, reader_of
from ottla.wire.schema import Field, Struct
from ottla.wire.writer import writer_of

__all__ = ["UNREADABLE", "VERSION", "Record", "UnknownType", "array", "field", "reading", "writing"]

Record: TypeAlias = tuple[bytes, bytes | None]
"""A key and its value; None deletes."""

VERSION = struct.Struct(">h")
UNREADABLE = (Malformed, IndexError, struct.error, UnicodeDecodeError, ValueError)
"""What decoders raise on purpose. Loading skips a record whatever its decoder raises."""


class UnknownType(ValueError):
    """A key of a version that this broker does not know: written by a newer one."""


def field(
    name: str,
    kind: Struct | str,
    *,
    flexible: bool = False,
    tag: int | None = None,
    default: Any = None,
    nullable: bool = True,
) -> Field:
    """Where Kafka's schema has no null, `nullable=False` makes a record that has one there unreadable."""
    if isinstance(kind, Struct):
        return Field(name, "struct", kind, False, nullable, flexible, tag, default)
    zero = {"string": "", "bytes": b"", "bool": False, "uuid": None}.get(kind, 0)
    return Field(name, kind, None, False, nullable, flexible, tag, zero if default is None else default)


def array(
    name: str, of: Struct | str, *, flexible: bool = False, tag: int | None = None, nullable: bool = True
) -> Field:
    if isinstance(of, Struct):
        return Field(name, "struct", of, True, nullable, flexible, tag, ())
    return Field(name, of, None, True, nullable, flexible, tag, ())


def reading(*versions: Struct) -> Callable[[memoryview], Any]:
    """A reader of values of these versions; fields that a version lacks have their defaults."""
    newest = versions[-1]
    readers: dict[int, Read] = {struct.version: reader_of(struct, newest) for struct in versions}

    def read(data: memoryview) -> Any:
        (version,) = VERSION.unpack_from(data)
        if version not in readers:
            raise Malformed(f"{newest.name} of version {version} is not known")
        return readers[version](data, VERSION.size)[0]

    return read


def writing(struct: Struct) -> Callable[[dict[str, Any]], bytes]:
    write = writer_of(struct)
    head = VERSION.pack(struct.version)

    def written(values: dict[str, Any]) -> bytes:
        parts = [head]
        write(parts, values)
        return b"".join(parts)

    return written
