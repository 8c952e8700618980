import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.wire.frames import FrameBuffer
from ottla.wire.reader import Malformed


def feed(buffer: FrameBuffer, data: bytes, step: int) -> list[bytes]:
    frames = []
    while data:
        room = buffer.room()
        count = min(len(room), len(data), step)
        room[:count] = data[:count]
        data = data[count:]
        buffer.received(count)
        frames += [bytes(frame) for frame in buffer.frames()]
    return frames


@given(st.lists(st.binary(max_size=5000), max_size=8), st.integers(1, 9000))
def test_frames_come_out_as_they_went_in(frames: list[bytes], step: int) -> None:
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    buffer = FrameBuffer(frame_bytes_max=10_000, buffer_bytes=64)
    assert feed(buffer, stream, step) == frames
    assert buffer.unread_bytes == 0


def test_one_byte_at_a_time() -> None:
    frames = [b"", b"a", b"bc" * 1000]
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    assert feed(FrameBuffer(frame_bytes_max=10_000), stream, 1) == frames


@pytest.mark.parametrize("size", [-1, -(2**31), 10_001, 2**31 - 1])
def test_a_length_out_of_bounds_is_refused(size: int) -> None:
    with pytest.raises(Malformed, match=str(size)):
        feed(FrameBuffer(frame_bytes_max=10_000), size.to_bytes(4, "big", signed=True), 4)


def test_a_claimed_length_allocates_nothing_until_bytes_come() -> None:
    buffer = FrameBuffer(frame_bytes_max=100_000_000)
    feed(buffer, (90_000_000).to_bytes(4, "big") + bytes(1000), 1004)
    assert len(buffer.room()) < 1_000_000


def test_the_buffer_shrinks_after_a_large_frame() -> None:
    buffer = FrameBuffer(frame_bytes_max=10_000_000)
    large = bytes(5_000_000)
    assert feed(buffer, len(large).to_bytes(4, "big") + large, 65536) == [large]
    for _ in range(3):
        feed(buffer, (1).to_bytes(4, "big") + b"x", 5)
    assert len(buffer.room()) <= 64 * 1024
