"""Buffers for reads are used again, but never while there is a view of them."""

from ottla import buffer_pool
from ottla.system import RealDisk

SIZE = 100_000


def test_a_buffer_is_used_again_when_no_view_is_left():
    first = buffer_pool.take(SIZE)
    owner = first.obj
    del first
    assert buffer_pool.take(SIZE).obj is owner


def test_a_part_keeps_its_buffer():
    part = buffer_pool.take(SIZE)[10:20]
    part[:] = b"0123456789"
    others = [buffer_pool.take(SIZE) for _ in range(2 * buffer_pool.BUFFERS_MAX)]
    for other in others:
        other[:] = bytes(SIZE)
    assert bytes(part) == b"0123456789"
    assert len({id(view.obj) for view in (part, *others)}) == len(others) + 1


def test_every_size_is_given():
    sizes = (
        0,
        1,
        buffer_pool.SMALL_BYTES - 1,
        buffer_pool.SMALL_BYTES,
        buffer_pool.BUFFER_BYTES,
        buffer_pool.BUFFER_BYTES + 1,
    )
    assert [len(buffer_pool.take(size)) for size in sizes] == list(sizes)


def test_what_was_read_stays_while_more_is_read(tmp_path):
    (tmp_path / "file").write_bytes(b"".join(bytes([number]) * SIZE for number in range(20)))
    file = RealDisk().open(str(tmp_path / "file"))
    pieces = [file.read_now(number * SIZE, SIZE) for number in range(20)]
    assert [bytes(piece) for piece in pieces] == [bytes([number]) * SIZE for number in range(20)]
    file.close()
