"""Random messages in every version, as plain values and as kio's objects: kio is the oracle of our codecs."""

import dataclasses
import datetime
import io
import uuid
from collections.abc import Sequence
from random import Random
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32Timedelta, i64Timedelta
from ottla.wire.schema import Field, Struct, struct_of

RANGES = {"int8": 7, "int16": 15, "int32": 31, "int64": 62, "uint16": 16}
LIMITS = {kind: (-(2**bits), 2**bits - 1) for kind, bits in (("int8", 7), ("int16", 15), ("int32", 31), ("int64", 63))}
ALLOWED_MS = 10_000
ROUGH_SHARE, LONG_SHARE = 0.7, 0.2
LONG_TEXT = "x" * 40_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def random_values(random: Random, struct: Struct, *, known: Sequence[str] = ()) -> dict[str, Any]:
    """With names that are `known` to the broker they are rough: numbers at their limits, those names, long texts.

    kio has no objects for all such values: its dates and times end earlier.
    """
    return {field.name: _value(random, field, known) for field in struct.fields}


def _value(random: Random, field: Field, known: Sequence[str]) -> Any:
    if field.nullable and random.random() < 0.2:
        return None
    if field.is_array:
        return [_one(random, field, known) for _ in range(random.randrange(4))]
    return _one(random, field, known)


def _one(random: Random, field: Field, known: Sequence[str]) -> Any:
    if field.struct:
        return random_values(random, field.struct, known=known)
    if known and random.random() < ROUGH_SHARE and (rough := _rough(random, field, known)) is not None:
        return rough
    if field.name.endswith("error_code"):
        return random.randrange(90)  # kio knows only Kafka's own codes
    if field.kind in RANGES and any(word in field.name for word in ("time", "period")):
        return random.getrandbits(30)  # kio makes dates of them
    if field.kind in RANGES:
        return random.getrandbits(RANGES[field.kind] - 1)
    if field.kind == "bool":
        return random.random() < 0.5
    if field.kind == "uuid":
        return random.randbytes(16)
    if field.kind == "string":
        return "".join(random.choice("aß€-x9 ") for _ in range(random.choice((0, 1, 20, 200))))
    if field.kind == "float64":
        return random.random()
    return random.randbytes(random.choice((0, 1, 130, 20_000)))


def _rough(random: Random, field: Field, known: Sequence[str]) -> Any:
    if field.kind in LIMITS:
        low, high = LIMITS[field.kind]
        if "time" in field.name and random.random() < 0.5:
            return min(ALLOWED_MS, high)  # others are refused before anything else is checked
        return random.choice((low, max(low, -2), max(low, -1), 0, 1, high))
    if field.kind == "string":
        return LONG_TEXT if field.flexible and random.random() < LONG_SHARE else random.choice(known)
    if field.kind == "float64":
        return random.choice((float("nan"), float("inf"), -1.0, 0.0, 1e300))
    return None


def to_kio(entity: Any, values: dict[str, Any]) -> Any:
    """The kio object for plain values."""
    struct = struct_of(entity)
    arguments = {}
    for ours, field in zip(struct.fields, dataclasses.fields(entity), strict=True):
        arguments[field.name] = _convert(ours, field, values[field.name])
    return entity(**arguments)


def _convert(ours: Field, field: Any, value: Any) -> Any:
    if value is None:
        return None
    if ours.is_array:
        return tuple(_convert(dataclasses.replace(ours, is_array=False), field, item) for item in value)
    if ours.struct:
        return to_kio(_entity_in(field.type, ours.struct.name), value)
    kafka_type = field.metadata["kafka_type"]
    if kafka_type.startswith("timedelta"):
        kind = i32Timedelta if kafka_type.endswith("32") else i64Timedelta
        return kind.parse(datetime.timedelta(milliseconds=value))
    if kafka_type == "datetime_i64":
        return EPOCH + datetime.timedelta(milliseconds=value)
    return uuid.UUID(bytes=value) if kafka_type == "uuid" else value


def _entity_in(annotation: Any, name: str) -> Any:
    if dataclasses.is_dataclass(annotation):
        return annotation if annotation.__name__ == name else None
    return next(found for part in annotation.__args__ if (found := _entity_in_safe(part, name)))


def _entity_in_safe(annotation: Any, name: str) -> Any:
    if dataclasses.is_dataclass(annotation) or hasattr(annotation, "__args__"):
        try:
            return _entity_in(annotation, name)
        except StopIteration:
            return None
    return None


def kio_bytes(entity: Any, values: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    entity_writer(entity)(buffer, to_kio(entity, values))
    return buffer.getvalue()


def request_entity(key: int, version: int) -> Any:
    return load_request_schema(key, version)


def response_entity(key: int, version: int) -> Any:
    return load_response_schema(key, version)


def kio_reads(entity: Any, data: bytes) -> Any:
    value, size = entity_reader(entity)(data, 0)
    assert size == len(data)
    return value
