"""The hand-made codec of OffsetCommit against kio, and against bytes that are no commit."""

import contextlib
import io
import struct
from random import Random

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from ottla.wire.offset_commit import encode, flexible_reader
from ottla.wire.reader import Malformed, Tally
from ottla.wire.schema import struct_of
from support.kio_oracle import random_values, to_kio

REFUSED = (Malformed, IndexError, struct.error, UnicodeDecodeError)


READ = flexible_reader(Tally(1_000))


def written(entity: type, values: dict) -> bytes:  # type: ignore[type-arg]
    buffer = io.BytesIO()
    entity_writer(entity)(buffer, to_kio(entity, values))
    return buffer.getvalue()


@pytest.mark.parametrize("version", [8, 9])
def test_requests_are_read_as_kio_wrote_them(version: int) -> None:
    random, entity = Random(version), load_request_schema(8, version)
    for _ in range(300):
        values = random_values(random, struct_of(entity))
        data = written(entity, values)
        request, end = READ(memoryview(data + b"behind"), 0)
        assert end == len(data)
        assert request.group_id == values["group_id"] and request.member_id == values["member_id"]
        assert request.group_instance_id == values["group_instance_id"]
        assert request.generation_id_or_member_epoch == values["generation_id_or_member_epoch"]
        assert request.topics == [
            (
                topic["name"],
                [
                    (p["partition_index"], p["committed_offset"], p["committed_leader_epoch"], p["committed_metadata"])
                    for p in topic["partitions"]
                ],
            )
            for topic in values["topics"]
        ]


def test_cut_and_broken_requests_are_refused_or_read_but_never_worse() -> None:
    random, entity = Random(1), load_request_schema(8, 9)
    data = written(entity, random_values(random, struct_of(entity)))
    for end in range(len(data)):
        with pytest.raises(REFUSED):
            READ(memoryview(data[:end]), 0)
    for _ in range(2000):
        broken = bytearray(data)
        broken[random.randrange(len(broken))] = random.randrange(256)
        with contextlib.suppress(REFUSED):
            READ(memoryview(bytes(broken)), 0)


@pytest.mark.parametrize("version", range(2, 10))
def test_responses_are_what_kio_reads(version: int) -> None:
    entity = load_response_schema(8, version)
    data = b"".join(encode(version, [("a", [(0, 0), (7, 3)]), ("bß", []), ("c", [(1, 12)])]))
    response, size = entity_reader(entity)(data, 0)
    assert size == len(data)
    seen = [(t.name, [(p.partition_index, int(p.error_code)) for p in t.partitions]) for t in response.topics]
    assert seen == [("a", [(0, 0), (7, 3)]), ("bß", []), ("c", [(1, 12)])]
