"""The record types of the offsets topic, by the version that each key begins with. Pure.

A type registers how its records are put in force again when a shard loads:

    @record_type(2)
    def group_metadata(state: State, key: memoryview, value: memoryview | None) -> None: ...

`key` and `value` include the two bytes of version that both begin with. What cannot be read raises (Malformed,
IndexError, struct.error, UnicodeDecodeError): the record is then skipped and counted, and loading goes on.
"""

import struct
from collections.abc import Callable
from typing import Any

from ottla.wire.reader import Malformed, Read, reader_of
from ottla.wire.schema import Field, Struct
from ottla.wire.writer import writer_of

__all__ = ["UNREADABLE", "UnknownType", "array", "field", "reading", "record_type", "replay", "writing"]

VERSION = struct.Struct(">h")
UNREADABLE = (Malformed, IndexError, struct.error, UnicodeDecodeError, ValueError)

Replay = Callable[[Any, memoryview, memoryview | None], None]
_types: dict[int, Replay] = {}


class UnknownType(ValueError):
    """A key of a version that this broker does not know: written by a newer one."""


def record_type(*key_versions: int) -> Callable[[Replay], Replay]:
    def register(replayed: Replay) -> Replay:
        for version in key_versions:
            assert version not in _types, f"record type {version} registered twice"
            _types[version] = replayed
        return replayed

    return register


def replay(state: Any, key: memoryview, value: memoryview | None) -> None:
    """Put a record in force on `state`, a shard."""
    (version,) = VERSION.unpack_from(key)
    replayed = _types.get(version)
    if replayed is None:
        raise UnknownType(f"record type {version}")
    replayed(state, key, value)


# Schemas of keys and values, in the words of wire.schema.


def field(name: str, kind: str, *, flexible: bool = False, tag: int | None = None, default: Any = None) -> Field:
    zero = {"string": "", "bytes": b"", "bool": False, "uuid": None}.get(kind, 0)
    return Field(name, kind, None, False, True, flexible, tag, zero if default is None else default)


def array(name: str, of: Struct | str, *, flexible: bool = False, tag: int | None = None) -> Field:
    if isinstance(of, Struct):
        return Field(name, "struct", of, True, True, flexible, tag, ())
    return Field(name, of, None, True, True, flexible, tag, ())


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
