"""Our reader and writer against kio's, for every API and version that is served."""

from random import Random

import msgspec
import pytest
from ottla.api.registry import load_all
from ottla.wire.reader import Malformed, reader_of
from ottla.wire.schema import request_struct, response_struct
from ottla.wire.writer import uvarint, writer_of
from support.kio_oracle import kio_bytes, kio_reads, random_values, request_entity, response_entity, to_kio

EVERY_VERSION = [
    (api.key, version) for api in load_all().values() for version in range(api.version_min, api.version_max + 1)
]


def plain(message: object) -> object:
    if isinstance(message, list):
        return [plain(item) for item in message]
    if isinstance(message, msgspec.Struct):
        return {name: plain(getattr(message, name)) for name in message.__struct_fields__}
    return bytes(message) if isinstance(message, memoryview) else message


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_reads_what_kio_writes(key: int, version: int) -> None:
    struct = request_struct(key, version)
    read = reader_of(struct, struct)
    random = Random(key * 100 + version)
    for _ in range(10):
        values = random_values(random, struct)
        data = kio_bytes(request_entity(key, version), values)
        message, end = read(memoryview(data), 0)
        assert end == len(data)
        seen = plain(message)
        assert isinstance(seen, dict)
        assert {name: seen.get(name, value) for name, value in values.items()} == values


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_kio_reads_what_we_write(key: int, version: int) -> None:
    struct, entity = response_struct(key, version), response_entity(key, version)
    random = Random(key * 100 + version)
    for _ in range(10):
        values = random_values(random, struct)
        parts: list[bytes] = []
        writer_of(struct)(parts, values)
        assert kio_reads(entity, b"".join(parts)) == to_kio(entity, values)


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_damaged_requests_end_in_a_clear_error_or_a_message(key: int, version: int) -> None:
    """Whatever the bytes: no other exception, no endless loop, no allocation that the bytes do not pay for."""
    struct = request_struct(key, version)
    read = reader_of(struct, struct)
    random = Random(key * 100 + version)
    data = bytearray(kio_bytes(request_entity(key, version), random_values(random, struct)))
    for _ in range(60):
        damaged = bytearray(data[: random.randrange(len(data) + 1)])
        for _ in range(random.randrange(4)):
            if damaged:
                damaged[random.randrange(len(damaged))] = random.choice((0, 0x7F, 0x80, 0xFF, random.randrange(256)))
        try:
            read(memoryview(damaged), 0)
        except (Malformed, IndexError, ValueError, __import__("struct").error):
            pass


def test_an_array_must_fit_into_the_bytes_that_remain() -> None:
    read = reader_of(request_struct(3, 12), request_struct(3, 13))
    with pytest.raises(Malformed, match="array claims"):
        read(memoryview(uvarint(2**31) + bytes(100)), 0)


def test_unknown_tagged_fields_are_skipped() -> None:
    read = reader_of(request_struct(18, 3), request_struct(18, 4))
    name = b"\x03ab\x02c"
    tags = b"\x02" + b"\x63\x03xyz" + uvarint(1000) + b"\x00"
    message, end = read(memoryview(name + tags), 0)
    assert message.client_software_name == "ab"
    assert end == len(name + tags)


def test_fields_of_newer_versions_have_their_defaults() -> None:
    read = reader_of(request_struct(1, 4), request_struct(1, 18))
    data = kio_bytes(request_entity(1, 4), random_values(Random(1), request_struct(1, 4)))
    message, _ = read(memoryview(data), 0)
    assert message.session_epoch == -1
    assert message.replica_state.replica_epoch == -1
