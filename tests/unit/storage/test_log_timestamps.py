"""Finding offsets by timestamp."""

from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.wire.batch import parse
from ottla.wire.records import Record, encode
from support.logs import T0, fill, make_batch, open_log


def test_first_record_at_or_after(tmp_path):
    log = open_log(tmp_path, segment_bytes=1_500, index_interval_bytes=300)
    fill(log, 40, epoch=3)
    assert len(log.segments) > 2
    assert log.offset_for_timestamp(T0 - 5) == (0, T0, 3)
    assert log.offset_for_timestamp(T0 + 101) == (31, T0 + 101, 3)
    assert log.offset_for_timestamp(T0 + 103) == (33, T0 + 110, 3)
    assert log.offset_for_timestamp(T0 + 393) is None
    assert log.max_timestamp() == (119, T0 + 392, 3)


def test_not_below_the_start(tmp_path):
    log = open_log(tmp_path)
    fill(log, 5)
    log.advance_start(4)
    assert log.offset_for_timestamp(0) == (4, T0 + 11, 0)


def test_empty_log_and_records_without_timestamp(tmp_path):
    log = open_log(tmp_path)
    assert log.max_timestamp() is None
    assert log.offset_for_timestamp(0) is None
    log.append(parse(encode([Record(0, -1, None, b"v")])), leader_epoch=0)
    assert log.max_timestamp() is None


def test_the_largest_is_found_again_after_reopening(tmp_path):
    log = open_log(tmp_path, segment_bytes=1_000)
    fill(log, 20)
    log.append(make_batch(1, timestamp=T0 + 5), leader_epoch=0)
    log.close()
    again = open_log(tmp_path, segment_bytes=1_000)
    assert again.max_timestamp() == (59, T0 + 192, 0)
    assert again.active.largest_timestamp() >= T0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=4), min_size=1, max_size=30),
    st.sampled_from([0, 150, 4096]),
    st.booleans(),
)
def test_exact_for_timestamps_in_any_order(tmp_path_factory, groups, interval, reopen):
    folder = tmp_path_factory.mktemp("times")
    log = open_log(folder, segment_bytes=500, index_interval_bytes=interval)
    everything: list[tuple[int, int]] = []
    for group in groups:
        everything += [(len(everything) + number, T0 + value) for number, value in enumerate(group)]
        records = [Record(number, T0 + value, b"k", b"v") for number, value in enumerate(group)]
        log.append(parse(encode(records)), leader_epoch=0)
    if reopen:
        log.close()
        log = open_log(folder, segment_bytes=500, index_interval_bytes=interval)
    for value in range(-1, 52):
        expected = next(((offset, stamp, 0) for offset, stamp in everything if stamp >= T0 + value), None)
        assert log.offset_for_timestamp(T0 + value) == expected
    largest = max(stamp for _, stamp in everything)
    assert log.max_timestamp() == next((offset, stamp, 0) for offset, stamp in everything if stamp == largest)
