"""Frames of the replication stream: what is encoded is read back, and no bytes do more than raise BadFrame."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ottla.wire import replication as frames
from ottla.wire.replication import BadFrame, decode, encode

slots = st.integers(0, 2**32 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
int16 = st.integers(-(2**15), 2**15 - 1)
text = st.text(max_size=100)
topic_ids = st.binary(min_size=16, max_size=16)


@st.composite
def data(draw):
    batches = draw(st.lists(st.binary(max_size=300), max_size=5))
    entries = [
        frames.Entry(draw(slots), draw(int32), draw(int64), draw(int64), draw(int64), len(batch)) for batch in batches
    ]
    return frames.Data(entries, batches)


def many(item):
    return st.lists(item, max_size=5)


anything = st.one_of(
    st.builds(frames.Hello, text, int32, int64, int16, int16),
    st.builds(frames.Welcome, int16, int32),
    st.builds(frames.Follows, many(st.builds(frames.Follow, slots, topic_ids, int32, int32, int64, int32, int64))),
    st.builds(frames.Unfollow, many(slots)),
    st.builds(frames.Ack, st.integers(0, 2**64 - 1), many(st.builds(frames.Acked, slots, int64, int64))),
    data(),
    st.builds(frames.Watermarks, many(st.builds(frames.Watermark, slots, int64, int64))),
    st.builds(frames.Diverged, slots, int32, int32, int64),
    st.builds(frames.StartAt, slots, int32, int64),
    st.builds(frames.Refused, slots, int16, text),
)


@settings(deadline=None)
@given(anything)
def test_what_is_encoded_is_read_back(frame):
    assert decode(encode(frame)) == frame


@settings(deadline=None)
@given(st.binary(max_size=200))
@example(b"")
@example(b"\x06\xff\xff\xff\xff")  # Data with four billion entries
@example(b"\x02\xff\xff\xff\xff" + bytes(48))
def test_no_bytes_do_more_than_be_refused(raw):
    try:
        frame = decode(raw)
    except BadFrame:
        return
    assert decode(encode(frame)) == frame


@settings(deadline=None)
@given(anything, st.integers(0, 2000), st.integers(0, 255))
def test_a_damaged_frame_is_refused_or_another_frame(frame, position, value):
    raw = bytearray(encode(frame))
    raw[position % len(raw)] = value
    test_no_bytes_do_more_than_be_refused.hypothesis.inner_test(bytes(raw))


@settings(deadline=None)
@given(anything, st.integers(1, 400))
def test_a_frame_cut_short_is_never_read_as_if_it_were_whole(frame, missing):
    raw = encode(frame)
    if missing >= len(raw) or isinstance(frame, frames.Hello | frames.Refused):  # those end with a text of any length
        return
    with pytest.raises(BadFrame):
        decode(raw[:-missing])


@pytest.mark.parametrize(
    ("low", "high", "common"), [(1, 1, 1), (0, 9, 1), (1, 3, 1), (2, 3, None), (0, 0, None), (-5, 0, None)]
)
def test_the_highest_common_version_is_spoken(low, high, common):
    assert frames.common_version(frames.Hello("", 0, 0, low, high)) == common


@pytest.mark.parametrize(
    "make",
    [
        lambda count: frames.Follows([frames.Follow(1, bytes(16), 0, 0, 0, -1, 0)] * count),
        lambda count: frames.Unfollow([1] * count),
        lambda count: frames.Ack(0, [frames.Acked(1, 0, 0)] * count),
        lambda count: frames.Watermarks([frames.Watermark(1, 0, 0)] * count),
        lambda count: frames.Data([frames.Entry(1, 0, 0, 0, 0, 0)] * count, []),
    ],
)
def test_a_frame_with_too_many_items_is_refused(make):
    decode(encode(make(frames.ITEMS_MAX)))
    with pytest.raises(BadFrame, match="at most"):
        decode(encode(make(frames.ITEMS_MAX + 1)))
