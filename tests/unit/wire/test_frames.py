import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.wire.frames import READ_AHEAD_BUFFERS, FrameBuffer, FrameLimits, ReceiveBuffers
from ottla.wire.reader import Malformed


def feed(buffer: FrameBuffer, data: bytes, step: int) -> list[bytes]:
    frames = []
    while data:
        space = buffer.free_space()
        count = min(len(space), len(data), step)
        space[:count] = data[:count]
        data = data[count:]
        buffer.received(count)
        frames += [bytes(frame) for frame in buffer.frames()]
    return frames


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


@given(st.lists(st.binary(max_size=5000), max_size=8), st.integers(1, 9000))
def test_frames_come_out_as_they_went_in(frames: list[bytes], step: int) -> None:
    buffer = FrameBuffer(frame_bytes_max=10_000, buffers=ReceiveBuffers(shared_bytes=64))
    assert feed(buffer, framed(*frames), step) == frames
    assert buffer.unread_bytes == 0


@given(
    st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=3000)), max_size=12),
    st.integers(1, 5000),
)
def test_connections_that_share_a_buffer_do_not_mix(pieces: list[tuple[int, bytes]], step: int) -> None:
    shared = ReceiveBuffers(shared_bytes=256)
    buffers = [FrameBuffer(frame_bytes_max=10_000, buffers=shared) for _ in range(3)]
    streams = [framed(*(data for owner, data in pieces if owner == number)) for number in range(3)]
    got: list[list[bytes]] = [[], [], []]
    while any(streams):
        for number, buffer in enumerate(buffers):
            got[number] += feed(buffer, streams[number][:step], step)
            streams[number] = streams[number][step:]
    assert got == [[data for owner, data in pieces if owner == number] for number in range(3)]


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.integers(1, 900), st.integers(0, 3))
def test_a_frame_that_is_put_back_comes_again(frames: list[bytes], step: int, refusals: int) -> None:
    buffer, data, got = FrameBuffer(frame_bytes_max=10_000), framed(*frames), []
    while data:
        count = min(len(buffer.free_space()), len(data), step)
        buffer.free_space()[:count] = data[:count]
        data = data[count:]
        buffer.received(count)
        for refused in range(refusals + 1):
            while (frame := buffer.next_frame()) is not None:
                if refused < refusals:
                    buffer.put_back(frame)
                    break
                got.append(bytes(frame))
            buffer.settle()
    assert got == frames


def test_one_byte_at_a_time() -> None:
    frames = [b"", b"a", b"bc" * 1000]
    assert feed(FrameBuffer(frame_bytes_max=10_000), framed(*frames), 1) == frames


@pytest.mark.parametrize("size", [-1, -(2**31), 10_001, 2**31 - 1])
def test_a_length_out_of_bounds_is_refused(size: int) -> None:
    with pytest.raises(Malformed, match=str(size)):
        feed(FrameBuffer(frame_bytes_max=10_000), size.to_bytes(4, "big", signed=True), 4)


def test_a_claimed_length_allocates_nothing_until_bytes_come() -> None:
    buffer = FrameBuffer(frame_bytes_max=100_000_000)
    feed(buffer, (90_000_000).to_bytes(4, "big") + bytes(1000), 1004)
    assert len(buffer.free_space()) < 1_000_000
    assert buffer.begun_bytes == 90_000_004


def test_an_idle_connection_has_no_buffer_of_its_own() -> None:
    shared = ReceiveBuffers()
    buffer = FrameBuffer(frame_bytes_max=10_000_000, buffers=shared)
    large = bytes(5_000_000)
    assert feed(buffer, framed(large, b"x"), 65536) == [large, b"x"]
    assert buffer.free_space() is shared.shared


def test_large_buffers_are_used_again() -> None:
    shared = ReceiveBuffers()
    first, second = (FrameBuffer(frame_bytes_max=10_000_000, buffers=shared) for _ in range(2))
    large = framed(bytes(1_000_000))
    feed(first, large, 65536)
    feed(second, large[:70_000], 70_000)
    assert len(second.free_space()) > 900_000, "the first one's, as large as the frame needs"


def _refuse(key: int, size: int) -> None:
    if key == 3 and size > 100:
        raise Malformed(f"{key} has {size} bytes")


@pytest.mark.parametrize("step", [1, 2, 1000])
def test_a_claim_is_checked_by_its_api_before_it_is_believed(step: int) -> None:
    """Whoever asks how much to reserve gets no answer until then."""
    limits = FrameLimits(100, _refuse)
    buffer = FrameBuffer(frame_bytes_max=10_000, buffers=ReceiveBuffers(shared_bytes=64), limits=limits)
    large, small = framed(b"\0\4" + bytes(5000)), framed(b"\0\3" + bytes(98))
    assert len(feed(buffer, large + small, step)) == 2
    assert feed(buffer, (5000).to_bytes(4, "big") + b"\0", step) == []
    assert buffer.begun_bytes == 0
    with pytest.raises(Malformed, match="3 has 5000 bytes"):
        feed(buffer, b"\3", step)


def test_a_buffer_that_is_larger_than_its_frame_also_takes_what_comes_behind_it() -> None:
    """A read that ends with every frame of 100 KB is a read for each of them."""
    buffer, data = FrameBuffer(frame_bytes_max=1 << 20), framed(*[bytes(100_000)] * 20)
    reads = 0
    while data:
        space = buffer.free_space()
        count = min(len(space), len(data))
        space[:count], data = data[:count], data[count:]
        buffer.received(count)
        reads += 1
        while buffer.next_frame() is not None:
            pass
        buffer.settle()
    assert reads <= 4


def test_when_the_large_buffers_are_taken_a_frame_gets_no_more_than_it_needs() -> None:
    buffers = ReceiveBuffers()
    connections = [FrameBuffer(frame_bytes_max=1 << 20, buffers=buffers) for _ in range(10)]
    begun = framed(bytes(100_000))[:60_000]
    for each in connections:
        each.free_space()[: len(begun)] = begun
        each.received(len(begun))
        assert each.next_frame() is None
        each.settle()
    assert sum(len(each.free_space()) for each in connections[READ_AHEAD_BUFFERS:]) <= 8 * 100_004


@pytest.mark.parametrize(
    ("begin", "nature"), [(b"PRI *", "HTTP/2 or gRPC"), (b"GET /", "HTTP request"), (b"\x16\x03\x01\x02\x00", "TLS")]
)
def test_other_protocols_are_named(begin: bytes, nature: str) -> None:
    with pytest.raises(Malformed, match=f"beginning of .*{nature}"):
        feed(FrameBuffer(frame_bytes_max=10_000, buffers=ReceiveBuffers()), begin, 5)
