"""Checkpoints in Kafka's text format."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import Refusal
from ottla.storage.directories import checkpoint
from ottla.system import RealDisk

KAFKA_FILE = b"0\n2\norders 0 1500\nmy.topic-with_all 12 9223372036854775807\n"
OFFSETS = {("orders", 0): 1500, ("my.topic-with_all", 12): 2**63 - 1}


def test_is_kafkas_format() -> None:
    assert checkpoint.encode(OFFSETS) == KAFKA_FILE
    assert checkpoint.decode(KAFKA_FILE, path="f") == OFFSETS
    assert checkpoint.encode({}) == b"0\n0\n"


@given(
    st.dictionaries(st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0)), st.integers(0))
)
def test_round_trip(offsets: checkpoint.Offsets) -> None:
    assert checkpoint.decode(checkpoint.encode(offsets), path="f") == offsets


@pytest.mark.parametrize("data", [b"", b"0\n", b"0\n0\n"])
def test_nothing_written_yet(data: bytes) -> None:
    assert checkpoint.decode(data, path="f") == {}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"1\n0\n", "line 1: version '1', expected 0"),
        (b"0\n2\norders 0 1500\n", "line 2: '2' entries announced, 1 found"),
        (b"0\nmany\n", "line 2"),
        (b"0\n1\norders 0\n", "line 3: 'orders 0'"),
        (b"0\n1\norders x 1\n", "line 3"),
        (b"\xff\xfe", "line 1"),
    ],
)
def test_malformed_names_the_file_and_the_line(data: bytes, says: str) -> None:
    with pytest.raises(Refusal, match="checkpoint /d/f, ") as raised:
        checkpoint.decode(data, path="/d/f")
    assert says in str(raised.value)


@given(st.binary(max_size=60))
def test_garbage_never_surprises(data: bytes) -> None:
    with contextlib.suppress(Refusal):
        checkpoint.decode(data, path="f")


def test_on_disk(tmp_path: Path) -> None:
    disk, folder = RealDisk(), str(tmp_path)
    assert checkpoint.read(disk, folder, checkpoint.CLEANER) == {}
    checkpoint.write(disk, folder, checkpoint.CLEANER, OFFSETS)
    assert checkpoint.read(disk, folder, checkpoint.CLEANER) == OFFSETS
    assert [path.name for path in tmp_path.iterdir()] == ["cleaner-offset-checkpoint"]
