"""kio's message classes seen as a plain schema: the only module that knows how kio describes a message.

kio has one dataclass per message and version, generated from Kafka's own definitions. `reader` and `writer` compile
their codecs from the `Struct` made here. Versions are imported only when first used.
"""

import dataclasses
import typing
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any

from kio.index import load_request_schema, load_response_schema

__all__ = ["FIXED_SIZE_CODES", "Field", "Struct", "request_struct", "response_struct"]

# kio reads times as datetime and timedelta; on our side they stay the integers of the wire.
INTEGERS = {
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
    "error_code": "int16",
}
# In the words of the module struct; only a uuid has a fixed size besides.
FIXED_SIZE_CODES = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "int64": ">q",
    "float64": ">d",
}
ZERO = {"string": "", "bytes": b"", "records": None, "bool": False, "uuid": None, "float64": 0.0}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of one version. `kind` is a primitive's name, or "struct" with `struct` set."""

    name: str
    kind: str
    struct: "Struct | None"
    is_array: bool
    nullable: bool
    flexible: bool
    tag: int | None
    default: Any


@dataclass(frozen=True, slots=True)
class Struct:
    name: str
    version: int
    flexible: bool
    fields: tuple[Field, ...]

    @property
    def plain_fields(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.tag is None)

    @property
    def tagged_fields(self) -> tuple[Field, ...]:
        return tuple(sorted((f for f in self.fields if f.tag is not None), key=lambda f: f.tag or 0))


def request_struct(api_key: int, version: int) -> Struct:
    return struct_of(load_request_schema(api_key, version))


def response_struct(api_key: int, version: int) -> Struct:
    return struct_of(load_response_schema(api_key, version))


@cache
def struct_of(entity: Any) -> Struct:
    flexible = bool(entity.__flexible__)
    fields = tuple(_field(field, flexible=flexible) for field in dataclasses.fields(entity))
    return Struct(entity.__name__, int(entity.__version__), flexible, fields)


def _field(field: "dataclasses.Field[Any]", *, flexible: bool) -> Field:
    inner, nullable = _without_none(field.type)
    is_array = typing.get_origin(inner) is tuple
    if is_array:
        inner, _ = _without_none(typing.get_args(inner)[0])
    struct: Struct | None = struct_of(inner) if isinstance(inner, type) and dataclasses.is_dataclass(inner) else None
    kafka_type = field.metadata.get("kafka_type", "struct")
    kind = "struct" if struct else INTEGERS.get(kafka_type, kafka_type)
    if kafka_type in ("datetime_i64", "uuid"):
        nullable = is_array and nullable  # -1 and the zero id stand for none on the wire
    default = _default(field, kind, struct, is_array=is_array)
    return Field(field.name, kind, struct, is_array, nullable, flexible, field.metadata.get("tag"), default)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) in (UnionType, typing.Union):
        inner = [option for option in typing.get_args(annotation) if option is not NoneType]
        return inner[0], True
    return annotation, False


def _default(field: "dataclasses.Field[Any]", kind: str, struct: Struct | None, *, is_array: bool) -> Any:
    if field.metadata.get("kafka_type") == "datetime_i64":
        return -1
    if field.default is not dataclasses.MISSING:
        return _plain(field.default)
    if is_array:
        return ()
    return None if struct else ZERO.get(kind, 0)


def _plain(value: Any) -> Any:
    """A kio default as the value our reader would give: milliseconds, plain numbers, None for a default struct."""
    if hasattr(value, "total_seconds"):  # a timedelta
        return round(value.total_seconds() * 1000)
    if dataclasses.is_dataclass(value):
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return int(value)
