"""Appending and reading back."""

import os

import pytest
from ottla.errors import Code, KafkaError
from ottla.storage.directories.files import FileCache
from ottla.system import RealDisk
from ottla.wire.batch import HEADER_BYTES, crc_matches, iterate, parse
from ottla.wire.records import iterate as records_of
from support.logs import T0, SteppedClock, fill, make_batch, open_log, read_all, read_some, system_at


def test_what_is_appended_is_stamped_and_otherwise_unchanged(tmp_path):
    log = open_log(tmp_path)
    first, second = make_batch(3), make_batch(2, producer=(5, 0, 0))
    assert log.append(first, leader_epoch=4) == (0, 2, -1, 0, False, False)
    assert log.append(second, leader_epoch=4) == (3, 4, -1, 0, False, False)
    on_disk = (tmp_path / "orders-0" / "00000000000000000000.log").read_bytes()
    batches = list(iterate(on_disk))
    assert [(batch.base_offset, batch.leader_epoch) for batch in batches] == [(0, 4), (3, 4)]
    assert [bytes(batch.data)[16:] for batch in batches] == [bytes(first.data)[16:], bytes(second.data)[16:]]
    assert (log.end_offset, log.size_bytes, log.epochs.entries) == (5, len(on_disk), ((4, 0),))


def test_log_append_time_is_the_brokers(tmp_path):
    log = open_log(tmp_path, timestamp_type="LogAppendTime")
    appended = log.append(make_batch(2, timestamp=5), leader_epoch=0)
    assert appended.log_append_time == T0
    [batch] = read_all(log)
    assert crc_matches(batch)
    assert [record.timestamp for record in records_of(batch)] == [T0, T0]


@pytest.mark.parametrize(
    ("settings", "timestamp", "accepted"),
    [
        ({}, T0 + 3_600_000 - 2, True),
        ({}, T0 + 3_600_001, False),
        ({}, 0, True),
        ({"timestamp_before_max_ms": 1000}, T0 - 1000, True),
        ({"timestamp_before_max_ms": 1000}, T0 - 1001, False),
        ({"timestamp_type": "LogAppendTime", "timestamp_before_max_ms": 1000}, 0, True),
    ],
)
def test_timestamps_too_far_from_now_are_refused(tmp_path, settings, timestamp, accepted):
    log = open_log(tmp_path, **settings)
    if accepted:
        log.append(make_batch(3, timestamp=timestamp), leader_epoch=0)
    else:
        with pytest.raises(KafkaError) as refusal:
            log.append(make_batch(3, timestamp=timestamp), leader_epoch=0)
        assert refusal.value.code == Code.invalid_timestamp
        assert (log.end_offset, log.size_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("settings", "code"),
    [({"max_message_bytes": 100}, Code.message_too_large), ({"segment_bytes": 100}, Code.record_list_too_large)],
)
def test_a_batch_that_is_too_large_is_refused(tmp_path, settings, code):
    log = open_log(tmp_path, **settings)
    with pytest.raises(KafkaError) as refusal:
        log.append(make_batch(3, size=100), leader_epoch=0)
    assert refusal.value.code == code
    assert log.size_bytes == 0


def test_flush_messages_is_reported(tmp_path):
    log = open_log(tmp_path, flush_messages=4)
    assert not log.append(make_batch(3), leader_epoch=0).must_flush
    assert log.append(make_batch(1), leader_epoch=0).must_flush
    assert log.flush() == 4
    assert not log.append(make_batch(3), leader_epoch=0).must_flush


class FullDisk(RealDisk):
    """Refuses to write to .log files, halfway through, while `full`."""

    full = False

    def open(self, path, *, create=False):
        file = super().open(path, create=create)
        disk, write = self, file.append

        class Limited:
            def append(self, buffers):
                if disk.full and path.endswith(".log"):
                    os.pwrite(file._fd, b"".join(buffers)[:20], file._end)
                    os.ftruncate(file._fd, file._end)
                    raise OSError(28, "No space left on device")
                return write(buffers)

            def __getattr__(self, name):
                return getattr(file, name)

        return Limited()


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    disk = FullDisk()
    log = open_log(tmp_path, system=system_at(disk=disk))
    log.append(make_batch(3, producer=(5, 0, 0)), leader_epoch=0)
    disk.full = True
    with pytest.raises(OSError, match="No space"):
        log.append(make_batch(3, producer=(5, 0, 3)), leader_epoch=1)
    assert (log.end_offset, log.epochs.latest, log.producers.by_id[5].last_sequence) == (3, 0, 2)
    disk.full = False
    assert log.append(make_batch(3, producer=(5, 0, 3)), leader_epoch=1).base_offset == 3
    assert [batch.base_offset for batch in read_all(log)] == [0, 3]


@pytest.mark.parametrize("size", [1, 500, 5_000, 1 << 20])
@pytest.mark.parametrize("record_bytes", [20, 3_000])
def test_a_consumer_gets_every_batch_once_whatever_its_size_limit(tmp_path, size, record_bytes):
    log = open_log(tmp_path, segment_bytes=40_000)
    fill(log, 60, size=record_bytes)
    batches = read_all(log, size=size)
    assert [batch.base_offset for batch in batches] == list(range(0, 180, 3))
    assert all(crc_matches(batch) for batch in batches)


def test_reads_begin_with_the_batch_that_holds_the_offset(tmp_path):
    log = open_log(tmp_path, segment_bytes=3_000)
    fill(log, 40, count=5)
    for start in range(200):
        first = parse(read_some(log, start))
        assert first.base_offset == start // 5 * 5


def test_reads_end_below_the_given_offset(tmp_path):
    log = open_log(tmp_path)
    fill(log, 30)
    for end in range(4, 90):
        batches = list(iterate(read_some(log, 3, end=end)))
        assert [batch.base_offset for batch in batches] == [base for base in range(3, 90, 3) if base + 3 <= end]


def test_size_limit_and_first_batch(tmp_path):
    log = open_log(tmp_path)
    fill(log, 3, size=100)
    one = make_batch(3, size=100).size
    assert read_some(log, 0, size=one - 1, whole_first=False) == b""
    assert len(read_some(log, 0, size=one - 1)) == one
    assert len(read_some(log, 0, size=2 * one + 1, whole_first=False)) == 2 * one


def test_reads_outside_the_log(tmp_path):
    log = open_log(tmp_path)
    fill(log, 2)
    assert read_some(log, 6) == b""
    for start in (-1, 7):
        with pytest.raises(KafkaError) as refusal:
            read_some(log, start)
        assert refusal.value.code == Code.offset_out_of_range


def test_a_reader_that_goes_on_does_not_search(tmp_path):
    log = open_log(tmp_path)
    fill(log, 10)
    read_some(log, 0)
    fill(log, 1)
    log.active.position_of = None  # would fail if it were called
    assert parse(read_some(log, 30)).base_offset == 30


@pytest.fixture(autouse=True)
def _segments_may_be_patched(monkeypatch):
    """Slots forbid patching an instance; a subclass without them allows it."""
    from ottla.storage.log import segments as module
    from ottla.storage.log.segment import Segment

    monkeypatch.setattr(module, "Segment", type("Segment", (Segment,), {}))


@pytest.mark.parametrize(
    ("settings", "step_ms", "segments"),
    [
        ({"segment_bytes": 1_000}, 0, 10),
        ({"segment_ms": 100}, 30, 5),
        ({"segment_index_bytes": 48, "index_interval_bytes": 0}, 10, 5),
        ({}, 10, 1),
    ],
)
def test_rolls(tmp_path, settings, step_ms, segments):
    log = open_log(tmp_path, **settings)
    fill(log, 20, size=100, step_ms=step_ms)
    assert len(log.segments) == segments
    assert [batch.base_offset for batch in read_all(log)] == list(range(0, 60, 3))
    for older, newer in zip(log.segments, log.segments[1:], strict=False):
        assert older.next_offset == newer.base_offset
        assert os.path.getsize(newer.path(".snapshot")) == 10


def test_records_without_timestamps_roll_by_the_age_of_the_segment(tmp_path):
    clock = SteppedClock()
    log = open_log(tmp_path, system=system_at(clock), segment_ms=100)
    batch = make_batch(1, timestamp=-1)
    for _ in range(3):
        log.append(batch, leader_epoch=0)
        clock.now_ms += 60
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_replicated_batches_keep_their_stamps(tmp_path):
    leader, follower = open_log(tmp_path / "a"), open_log(tmp_path / "b", segment_bytes=1_500)
    fill(leader, 10, epoch=2)
    fill(leader, 10, epoch=5)
    data = read_some(leader, 0)
    follower.append_replicated(data, leader_epoch=5)
    assert (follower.end_offset, follower.epochs.entries) == (60, ((2, 0), (5, 30)))
    assert b"".join(bytes(batch.data) for batch in read_all(follower)) == data
    assert len(follower.segments) > 1
    with pytest.raises(KafkaError):
        follower.append_replicated(data, leader_epoch=5)
    damaged = bytearray(bytes(make_batch(3).data))
    damaged[0:8] = (60).to_bytes(8, "big")
    damaged[HEADER_BYTES + 3] ^= 1
    with pytest.raises(KafkaError) as refusal:
        follower.append_replicated(damaged, leader_epoch=5)
    assert refusal.value.code == Code.corrupt_message
    assert follower.end_offset == 60


def test_a_follower_that_writes_many_batches_at_once_has_the_same_indexes(tmp_path):
    leader, at_once, one_by_one = (open_log(tmp_path / name, segment_bytes=60_000) for name in ("a", "b", "c"))
    fill(leader, 100, size=500)
    batches = read_all(leader)
    at_once.append_replicated(b"".join(bytes(batch.data) for batch in batches), leader_epoch=0)
    for batch in batches:
        one_by_one.append_replicated(batch.data, leader_epoch=0)
    assert len(leader.segments) > 1
    for other in (at_once, one_by_one):
        assert [(s.base_offset, s.size, s.next_offset) for s in other.segments] == [
            (s.base_offset, s.size, s.next_offset) for s in leader.segments
        ]
        other.close()
    leader.close()
    for kind in (".index", ".timeindex", ".log"):
        files = [sorted((tmp_path / name / "orders-0").glob(f"*{kind}")) for name in ("a", "b", "c")]
        contents = [[(file.name, file.read_bytes()) for file in some] for some in files]
        assert contents[0] == contents[1] == contents[2]


def test_few_open_files_serve_many_segments(tmp_path):
    system = system_at()
    files = FileCache(system.disk, 2)
    log = open_log(tmp_path, system=system, files=files, segment_bytes=1_000)
    fill(log, 50, size=100)
    assert [batch.base_offset for batch in read_all(log, size=700)] == list(range(0, 150, 3))
    assert len(files) <= 2


def test_index_files_are_kafkas(tmp_path):
    log = open_log(tmp_path, index_interval_bytes=200)
    fill(log, 4, size=40, timestamp=T0)
    size = make_batch(3, size=40).size
    assert 200 < size <= 400, "so every batch but the first has an entry"
    log.roll()
    folder = tmp_path / "orders-0"
    entries = [(number * 3 + 2, number * size) for number in range(1, 4)]
    index = b"".join(offset.to_bytes(4, "big") + at.to_bytes(4, "big") for offset, at in entries)
    assert (folder / "00000000000000000000.index").read_bytes() == index
    times = b"".join((T0 + n * 10 + 2).to_bytes(8, "big") + (n * 3 + 2).to_bytes(4, "big") for n in range(1, 4))
    assert (folder / "00000000000000000000.timeindex").read_bytes() == times
