"""Texts that are too long for an int16."""

import struct

import pytest
from ottla.wire.schema import response_struct
from ottla.wire.text_limits import TEXT_BYTES_MAX, cut, is_too_long
from ottla.wire.writer import writer_of


@pytest.mark.parametrize("one", ["x", "ß", "€", "😀"])
def test_bytes_are_counted_not_characters(one: str) -> None:
    fits = one * (TEXT_BYTES_MAX // len(one.encode()))
    assert not is_too_long(fits)
    assert is_too_long(fits + one)
    assert not is_too_long(None)
    assert cut((fits + one).encode()).decode() == fits, "whole characters remain"


def test_a_message_is_cut_where_its_version_cannot_hold_it() -> None:
    parts: list[bytes] = []
    write = writer_of(response_struct(19, 3))
    write(parts, {"topics": [{"name": "t", "error_code": 17, "error_message": "€" * 20_000}]})
    data = b"".join(parts)
    size = TEXT_BYTES_MAX // 3 * 3
    assert data.endswith(struct.pack(">hh", 17, size) + "€".encode() * (size // 3))


def test_a_name_is_not() -> None:
    """Somebody else's name that has lost its end is another name: nothing of the kind may come in."""
    with pytest.raises(struct.error):
        writer_of(response_struct(19, 3))([], {"topics": [{"name": "x" * 40_000}]})
