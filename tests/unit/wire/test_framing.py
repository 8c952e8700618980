"""The framing of records: what a client may write passes in any pieces, and every flaw is refused, by both twins."""

import time
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.errors import Code, KafkaError
from ottla.wire import varints
from ottla.wire.records import Record, encode, spans
from support.twins import KINDS, twin

HEADER_BYTES = 61
values = st.none() | st.binary(max_size=200)
histories = st.lists(
    st.tuples(
        st.integers(-(2**61), 2**61), values, values, st.lists(st.tuples(st.text(max_size=5), values), max_size=3)
    ),
    min_size=1,
    max_size=20,
)
kinds = st.sampled_from(KINDS)


@pytest.fixture(params=KINDS)
def framing(request: pytest.FixtureRequest) -> Any:
    return twin("ottla.wire.framing", request.param)


def body(history: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]) -> bytes:
    return encode([Record(i, *fields) for i, fields in enumerate(history)])[HEADER_BYTES:]


def fed(module: Any, data: bytes, count: int, cuts: list[int] | None = None) -> Any:
    found = module.Framing(count)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts or ()), len(data)]
    for start, end in pairwise(edges):
        found.feed(data[start:end])
    found.finish()
    return found


def refused(module: Any, data: bytes, count: int, cuts: list[int] | None = None) -> str | None:
    """What the check said; None when the records passed."""
    try:
        fed(module, data, count, cuts)
    except KafkaError as error:
        assert error.code is Code.invalid_record
        return str(error.message)
    return None


@given(histories, st.lists(st.integers(0, 2**16), max_size=12), kinds)
def test_good_records_pass_in_any_pieces(history: list, cuts: list[int], kind: str) -> None:
    data = body(history)
    keyless = [index for index, (_, key, _, _) in enumerate(history) if key is None]
    for pieces in (None, cuts, list(range(len(data)))):
        found = fed(twin("ottla.wire.framing", kind), data, len(history), pieces)
        assert (found.index, found.keyless, found.keyless_indexes) == (len(history), len(keyless), keyless)


@given(histories, st.lists(st.integers(0, 2**16), max_size=5), st.data(), kinds)
def test_damage_is_refused_alike_in_all_pieces_and_never_disagrees_with_the_reader(
    history: list, cuts: list[int], draw: st.DataObject, kind: str
) -> None:
    """`records.spans` is the oracle: it is stricter in nothing, so what the check lets pass can be read."""
    module = twin("ottla.wire.framing", kind)
    data = bytearray(body(history))
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    verdict = refused(module, bytes(data), len(history))
    assert (verdict is None) == (refused(module, bytes(data), len(history), cuts) is None)
    assert (verdict is None) == (refused(module, bytes(data), len(history), list(range(len(data)))) is None)
    if verdict is None:
        assert [span[3] for span in spans(bytes(data), len(history))] == list(range(len(history)))


@given(st.binary(max_size=300), st.integers(0, 2**31 - 1), kinds)
def test_garbage_is_refused_or_frames(data: bytes, count: int, kind: str) -> None:
    if refused(twin("ottla.wire.framing", kind), data, count) is None:
        assert len(list(spans(data, count))) == count


@given(histories, st.integers(min_value=1), kinds)
def test_truncation_is_always_refused(history: list, cut: int, kind: str) -> None:
    data = body(history)
    assert refused(twin("ottla.wire.framing", kind), data[: -(cut % len(data) or 1)], len(history)) is not None


def varint(value: int) -> bytes:
    out = bytearray()
    varints.put(out, value)
    return bytes(out)


def record(inside: bytes) -> bytes:
    return varint(len(inside)) + inside


GOOD = bytes.fromhex("0c000000010100")  # no key, no value, no headers


@pytest.mark.parametrize(
    ("data", "count", "says"),
    [
        (b"", 1, "claims 1 records and holds 0"),
        (GOOD, 2**31 - 1, "claims 2147483647 records and holds 1"),
        (GOOD + GOOD, 1, "7 bytes follow the 1 records"),
        (GOOD + b"\0", 1, "1 bytes follow the 1 records"),
        (GOOD + GOOD, 2, "record 1 of a batch has the offset delta 0"),
        (bytes.fromhex("0c000001010100"), 1, "has the offset delta -1"),
        (bytes.fromhex("01000000010100"), 1, "claims a length of -1 bytes"),
        (bytes.fromhex("00000000010100"), 1, "claims a length of 0 bytes"),
        (bytes.fromhex("0a000000010100"), 1, "claims a length of 5 bytes"),
        (bytes.fromhex("0e000000010100"), 1, "is 1 bytes longer than its fields"),
        (bytes.fromhex("0e0000000101"), 1, "runs over the end"),
        (varint(2**31 - 1) + bytes(20), 1, "is 2147483641 bytes longer than its fields"),
        (b"\xff" * 20, 1, "too large for its field"),
        (bytes.fromhex("ffffffff1f") + bytes(9), 1, "too large for its field"),
        (record(b"\0" + b"\xff" * 9 + b"\x02\0\1\1\0"), 1, "too large for its field"),
        (record(b"\0" + b"\xff" * 12 + b"\0\0\1\1\0"), 1, "too large for its field"),
        (record(b"\0\0\0" + varint(100) + b"\1\0"), 1, "claims a field of 100 bytes where 2 remain"),
        (record(b"\0\0\0" + varint(-2) + b"\1\0"), 1, "claims a field of -2 bytes"),
        (record(b"\0\0\0\1" + varint(-(2**31)) + b"\0"), 1, "claims a field of -2147483648 bytes"),
        (record(b"\0\0\0\1\2\0"), 1, "runs over the end"),
        (record(b"\0\0\0\1\2\0") + GOOD, 2, "is shorter than its fields"),
        (record(b"\0\0\0\1\1\1"), 1, "claims -1 headers"),
        (record(b"\0\0\0\1\1" + varint(2**31 - 1)), 1, "claims 2147483647 headers in 0 bytes"),
        (record(b"\0\0\0\1\1\2\1\1"), 1, "has a header without a name"),
        (record(b"\0\0\0\1\1\2" + varint(50) + b"\1"), 1, "claims a field of 50 bytes where 1 remain"),
        (record(b"\0\0\0\1\1\2\0\3"), 1, "claims a field of -2 bytes"),
        (record(b"\0\0\0\1\1\2\0") + GOOD, 2, "is shorter than its fields"),
        (record(b"\0\0\0\1\1\0" + b"rest"), 1, "is 4 bytes longer than its fields"),
        (record(b"\0\0\0\1\1\2\0\1" + b"rest"), 1, "is 4 bytes longer than its fields"),
    ],
)
def test_flaws_say_what_is_wrong(framing: Any, data: bytes, count: int, says: str) -> None:
    with pytest.raises(KafkaError, match=says) as raised:
        fed(framing, data, count)
    assert raised.value.code is Code.invalid_record
    with pytest.raises(KafkaError, match=says if "follow" not in says else "follow"):
        fed(framing, data, count, list(range(len(data))))


@pytest.mark.parametrize(
    "data",
    [
        record(b"\0" + b"\xff" * 9 + b"\x01\0\1\1\0"),  # the largest timestamp delta of 64 bits
        record(b"\0\x80\0\x80\0\x81\0\x81\0\x80\0"),  # numbers with bytes that they do not need
        b"\x8c\x80\x80\x80\x00" + bytes.fromhex("000000010100"),
        record(b"\xff\0\0\1\1\0"),  # attributes are not used
        record(b"\0\0\0\0\0\0"),  # key and value empty
        record(b"\0\0\0\1\1\4\2\xff\1\0\2x"),
    ],
)
def test_unusual_but_good(framing: Any, data: bytes) -> None:
    fed(framing, data, 1)
    fed(framing, data, 1, list(range(len(data))))


def test_keyless_records_are_counted_and_the_first_are_listed(framing: Any) -> None:
    data = encode([Record(i, 0, None, b"v") for i in range(1000)])[HEADER_BYTES:]
    for cuts in (None, [999, 5000]):
        found = fed(framing, data, 1000, cuts)
        assert found.keyless == 1000
        assert found.keyless_indexes == list(range(framing.KEYLESS_SHOWN_MAX))


@settings(deadline=None)
@given(st.integers(1, 300_000), kinds)
def test_a_large_record_passes_in_windows_without_being_held(size: int, kind: str) -> None:
    data = encode([Record(0, 0, b"k", bytes(size)), Record(1, 0, b"k", b"v")])[HEADER_BYTES:]
    fed(twin("ottla.wire.framing", kind), data, 2, list(range(0, len(data), 4096)))


def test_no_memory_and_no_time_for_what_is_only_claimed(framing: Any) -> None:
    claims = (
        (GOOD, 2**31 - 1),
        (varint(2**31 - 1) + b"\0\0\0" + varint(2**30) + bytes(64), 2**31 - 1),
        (varint(2**31 - 1) + b"\0\0\0\1\1" + varint(2**30) + bytes(64), 1),
    )
    tracemalloc.start()
    started = time.process_time()
    for data, count in claims:
        assert refused(framing, data, count) is not None
    spent = time.process_time() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000, peak
    assert spent < 0.5, spent


@pytest.mark.parametrize("inside", [b"\0\0\0\1\1" + varint(50_000) + b"\0\1" * 50_000, b"\0" * 6])
def test_work_is_linear(framing: Any, inside: bytes) -> None:
    """A record that ends in the fast loop's blind spot must not be read again for every record behind it."""
    data = record(inside)
    small, large = data, data + b"".join(record(b"\0\0" + varint(i) + b"\1\1\0") for i in range(1, 20_001))
    fed(framing, small, 1)
    started = time.process_time()
    fed(framing, large, 20_001, list(range(0, len(large), 1000)))
    assert time.process_time() - started < 2
