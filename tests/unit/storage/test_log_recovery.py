"""Opening a log again: after a clean stop, after a crash at any byte, with leftovers of interrupted work."""

import os
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.errors import KafkaError
from ottla.storage.directories.files import FileCache
from ottla.system import RealDisk
from ottla.wire.batch import crc_matches
from support.logs import append_verified, contents, crash, fill, make_batch, make_marker, open_log, read_all, system_at

SIZE = make_batch(3).size


class CountingDisk(RealDisk):
    """Counts the bytes read from .log files."""

    log_bytes = 0

    def open(self, path, *, create=False):
        file = super().open(path, create=create)
        disk, read = self, file.read

        class Counted:
            def read(self, position, size):
                data = read(position, size)
                disk.log_bytes += len(data) if path.endswith(".log") else 0
                return data

            def __getattr__(self, name):
                return getattr(file, name)

        return Counted()


def test_a_clean_stop_needs_no_scan(tmp_path):
    log = open_log(tmp_path, segment_bytes=20_000)
    for number in range(20):
        log.append(make_batch(3, producer=(5, 0, number * 3), size=1000), leader_epoch=2)
    before = contents(log)
    log.close()
    disk = CountingDisk()
    again = open_log(tmp_path, system=system_at(disk=disk), segment_bytes=20_000)
    assert disk.log_bytes < 20_000
    assert (again.end_offset, again.flushed_offset, again.epochs.entries) == (60, 60, ((2, 0),))
    assert again.producers.by_id[5].last_sequence == 59
    assert contents(again) == before
    assert again.append(make_batch(3, producer=(5, 0, 60)), leader_epoch=2).base_offset == 60


def test_appends_after_reopening_go_on_with_the_indexes(tmp_path):
    log = open_log(tmp_path, index_interval_bytes=300)
    fill(log, 10)
    log.close()
    log = open_log(tmp_path, index_interval_bytes=300)
    fill(log, 10)
    log.close()
    for clean in (True, False):
        again = open_log(tmp_path, clean=clean, index_interval_bytes=300)
        index = again.active.load_index()
        for offset, position in zip(index.offsets, index.positions, strict=True):
            assert position == offset // 3 * SIZE
        assert len(contents(again)) == 20


def test_after_a_crash_everything_written_is_there(tmp_path):
    log = open_log(tmp_path, segment_bytes=1_000)
    for number in range(20):
        log.append(make_batch(3, producer=(5, 0, number * 3)), leader_epoch=number // 5)
    before, epochs = contents(log), log.epochs.entries
    crash(log)
    again = open_log(tmp_path, clean=False, segment_bytes=1_000)
    assert contents(again) == before
    assert (again.flushed_offset, again.epochs.entries) == (0, epochs)
    assert again.producers.by_id[5].written[-1].last_sequence == 59
    assert again.append(make_batch(3, producer=(5, 0, 57)), leader_epoch=3) == (
        57,
        59,
        log.clock.wall_ms() + 2,
        0,
        True,
        False,
    )


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=25),
    flush_after=st.integers(0, 25),
    damage=st.data(),
)
def test_a_crash_at_any_byte_leaves_a_prefix(tmp_path_factory, sizes, flush_after, damage):
    folder = tmp_path_factory.mktemp("crash")
    log = open_log(folder, segment_bytes=1_200, index_interval_bytes=200)
    for number, size in enumerate(sizes):
        log.append(make_batch(2, size=size, producer=(5, 0, number * 2)), leader_epoch=number // 4)
        if number == flush_after:
            log.flush()
    flushed, before = log.flushed_offset, contents(log)
    unflushed = [
        (segment, at, batch.size)
        for segment in log.segments
        for at, batch in segment.batches()
        if batch.base_offset >= flushed
    ]
    crash(log)
    if unflushed:
        segment, at, size = damage.draw(st.sampled_from(unflushed))
        kind = damage.draw(st.sampled_from(["cut", "zeros", "flip", "garbage"]))
        # Neither the first bytes (offset, not in the CRC) nor a cut between batches differs from sound data.
        _damage(segment.path(".log"), at + damage.draw(st.integers(16, size - 1)), kind)
    again = open_log(folder, clean=False, recovery_point=flushed, segment_bytes=1_200, index_interval_bytes=200)
    after = contents(again)
    assert after == before[: len(after)]
    assert again.end_offset == 2 * len(after) >= flushed
    assert all(crc_matches(batch) for batch in read_all(again))
    last = again.producers.by_id[5].last_sequence if after else -1
    assert last == again.end_offset - 1
    assert again.epochs.latest == (len(after) - 1) // 4
    assert again.append(make_batch(2, producer=(5, 0, last + 1)), leader_epoch=9).base_offset == 2 * len(after)
    again.close()
    assert len(contents(open_log(folder))) == len(after) + 1


def _damage(path, position, kind):
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        if kind == "cut":
            data = data[:position]
        elif kind == "zeros":
            data[position:] = bytes(len(data) - position)
        elif kind == "flip":
            data[position] ^= 0xFF
        else:
            data[position:] = os.urandom(70)
        file.seek(0)
        file.truncate()
        file.write(data)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_in_a_log_file_are_recovered_from(tmp_path_factory, garbage, behind_a_batch):
    folder = tmp_path_factory.mktemp("garbage")
    (folder / "orders-0").mkdir()
    good = bytes(make_batch(3).data) if behind_a_batch else b""
    (folder / "orders-0" / "00000000000000000000.log").write_bytes(good + garbage)
    log = open_log(folder, clean=False)
    assert log.end_offset == (3 if behind_a_batch else 0) or garbage[:8] == bytes(8)
    log.append(make_batch(3), leader_epoch=0)


def test_segments_after_a_damaged_one_are_dropped(tmp_path):
    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    fill(log, 10)
    crash(log)
    _damage(log.segments[1].path(".log"), 2 * SIZE + 5, "flip")
    again = open_log(tmp_path, clean=False, segment_bytes=3 * SIZE)
    assert (again.end_offset, len(again.segments)) == (15, 2)
    names = os.listdir(tmp_path / "orders-0")
    assert "00000000000000000018.log.deleted" in names
    again.purge(again.clock.wall_ms() + 60_000)
    assert not [name for name in os.listdir(tmp_path / "orders-0") if name.endswith(".deleted")]


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("harm", [os.remove, lambda path: os.truncate(path, 5)])
def test_a_lost_or_torn_index_is_rebuilt(tmp_path, kind, harm):
    log = open_log(tmp_path, segment_bytes=5 * SIZE, index_interval_bytes=0)
    fill(log, 20)
    before = contents(log)
    log.close()
    for segment in log.segments:
        harm(segment.path(kind))
    again = open_log(tmp_path, segment_bytes=5 * SIZE, index_interval_bytes=0)
    assert again.end_offset == 60
    assert contents(again) == before
    assert again.offset_for_timestamp(before and log.clock.wall_ms() + 100).offset == 30


def test_an_unreadable_file_stops_the_opening_and_stays(tmp_path):
    log = open_log(tmp_path)
    fill(log, 3)
    log.close()
    path = log.active.path(".log")

    class Failing(RealDisk):
        def open(self, name, *, create=False):
            if name == path:
                raise PermissionError(13, "Permission denied", name)
            return super().open(name, create=create)

    before = sorted(os.listdir(log.folder))
    with pytest.raises(PermissionError):
        open_log(tmp_path, clean=False, system=system_at(disk=Failing()))
    assert sorted(os.listdir(log.folder)) == before
    assert len(contents(open_log(tmp_path))) == 3


def test_leftovers_are_cleared(tmp_path):
    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    fill(log, 6)
    log.close()
    folder = tmp_path / "orders-0"
    for name in ("00000000000000000000.log.deleted", "00000000000000000003.log.cleaned", "00000000000000000099.index"):
        (folder / name).write_bytes(b"x")
    again = open_log(tmp_path, segment_bytes=3 * SIZE)
    assert not [name for name in os.listdir(folder) if "deleted" in name or "cleaned" in name or "99" in name]
    assert len(contents(again)) == 6


def test_a_log_that_ends_before_its_start_starts_over_there(tmp_path):
    log = open_log(tmp_path)
    fill(log, 3)
    log.close()
    again = open_log(tmp_path, log_start=100)
    assert (again.start_offset, again.end_offset) == (100, 100)
    assert again.append(make_batch(1), leader_epoch=0).base_offset == 100


def test_an_open_transaction_is_found_again(tmp_path):
    log = open_log(tmp_path)
    fill(log, 1)
    append_verified(log, make_batch(2, producer=(9, 0, 0), transactional=True))
    fill(log, 1)
    crash(log)
    for clean in (False, True):
        again = open_log(tmp_path, clean=clean)
        assert again.producers.last_stable_offset(again.end_offset) == 3
        again.close()
    again.append(make_marker(commit=False), leader_epoch=0, from_client=False)
    assert again.producers.last_stable_offset(8) == 3, "the marker is not replicated yet"
    assert again.producers.last_stable_offset(again.end_offset) == again.end_offset


def test_a_failed_fsync_is_final(tmp_path):
    log = open_log(tmp_path)
    fill(log, 1)
    opened = log.active.opened()

    class Failing:
        def sync(self):
            raise OSError(5, "Input/output error")

        def __getattr__(self, name):
            return getattr(real, name)

    real, opened.file = opened.file, Failing()
    with pytest.raises(OSError, match="Input/output"):
        log.flush()
    opened.file = real
    with pytest.raises(OSError, match="Input/output"):
        log.flush()
    assert log.flushed_offset == 0


def test_many_logs_share_few_files(tmp_path):
    system = system_at()
    files = FileCache(system.disk, 3)
    logs = [open_log(tmp_path / str(number), system=system, files=files) for number in range(10)]
    for _ in range(3):
        for log in logs:
            fill(log, 2)
    assert len(files) <= 3
    assert all(len(contents(log)) == 6 for log in logs)
    with suppress(KafkaError):
        logs[0].read(start=99, end=99, size_bytes_max=1, whole_first=True)


def test_offsets_that_go_back_end_the_log(tmp_path):
    (tmp_path / "orders-0").mkdir()
    batch = bytes(make_batch(3).data)
    (tmp_path / "orders-0" / "00000000000000000000.log").write_bytes(batch + batch)
    log = open_log(tmp_path, clean=False)
    assert (log.end_offset, log.size_bytes) == (3, SIZE)


def test_what_a_failed_append_could_not_take_back_is_overwritten(tmp_path):
    log = open_log(tmp_path)
    fill(log, 2)
    log.files.forget(log.active.handle)
    with open(log.active.path(".log"), "ab") as file:
        file.write(b"half a batch")
    fill(log, 1)
    assert [batch.base_offset for batch in read_all(log)] == [0, 3, 6]


@pytest.mark.parametrize("left", [0, 2 * SIZE])
def test_what_lies_behind_a_hole_between_segments_is_given_up(tmp_path, left):
    """A power loss may take the end of a segment, at the border of a batch, and spare the next one."""
    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    fill(log, 12)
    crash(log)
    os.truncate(f"{tmp_path}/orders-0/{9:020}.log", left)
    again = open_log(tmp_path, clean=False, segment_bytes=3 * SIZE)
    assert again.end_offset == 9 + left // SIZE * 3
    assert len(contents(again)) == again.end_offset // 3
    fill(again, 1)
    assert [batch.base_offset for batch in read_all(again)] == list(range(0, again.end_offset, 3))


def test_a_segment_that_is_missing_ends_the_log(tmp_path):
    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    fill(log, 12)
    crash(log)
    os.remove(f"{tmp_path}/orders-0/{9:020}.log")
    assert open_log(tmp_path, clean=False, segment_bytes=3 * SIZE).end_offset == 9


@pytest.mark.parametrize(("cleaned_to", "end"), [(None, 36), (18, 36), (9, 15), (0, 15)])
def test_gaps_of_a_compacted_log_are_no_holes_where_it_is_compacted(tmp_path, cleaned_to, end):
    """A segment that compaction has not reached ends where the next one begins; otherwise a power loss took its end."""
    log = open_log(tmp_path, segment_bytes=3 * SIZE, cleanup_policies=frozenset({"compact"}))
    fill(log, 12)
    crash(log)
    os.truncate(f"{tmp_path}/orders-0/{9:020}.log", 2 * SIZE)
    options = {"segment_bytes": 3 * SIZE, "cleanup_policies": frozenset({"compact"})}
    assert open_log(tmp_path, clean=False, cleaned_to=cleaned_to, **options).end_offset == end


def test_an_epoch_that_was_cut_off_is_not_found_again(tmp_path):
    """It stood in the checkpoint, and the log grew beyond the recovery point of that time before the crash."""
    log = open_log(tmp_path)
    fill(log, 2, epoch=0)
    fill(log, 2, epoch=1)
    log.flush()
    log.truncate_to(6)
    fill(log, 2, epoch=0)
    fill(log, 2, epoch=2)
    before = log.epochs.entries
    crash(log)
    again = open_log(tmp_path, clean=False, recovery_point=12)
    assert again.epochs.entries == before == ((0, 0), (2, 12))


def test_producers_that_were_cut_off_do_not_come_back_with_a_snapshot(tmp_path):
    """A clean stop left it inside a segment; the log was cut below it and has grown beyond it since."""
    log = open_log(tmp_path)
    fill(log, 2)
    log.append(make_batch(3, producer=(5, 0, 0)), leader_epoch=0)
    log.close()
    log = open_log(tmp_path)
    log.truncate_to(6)
    fill(log, 3, epoch=1)
    log.truncate_to(12)
    assert 5 not in log.producers.by_id


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (
            lambda data, size: data[: 2 * size + 70] + b"?" + data[2 * size + 71 :],
            "checksum of the batch there is wrong",
        ),
        (lambda data, size: data[: 2 * size + 70], "there is no whole batch"),
        (lambda data, size: data[: 2 * size] + data[:size], "does not follow the previous one"),
    ],
)
def test_what_is_cut_off_is_reported(tmp_path, caplog, damage, why):
    log = open_log(tmp_path)
    fill(log, 5)
    crash(log)
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    data = path.read_bytes()
    path.write_bytes(damage(data, len(data) // 5))
    lost = path.stat().st_size - 2 * len(data) // 5
    again = open_log(tmp_path, clean=False)
    assert again.end_offset == 6
    (line,) = [record.getMessage() for record in caplog.records]
    assert "orders-0: cut at offset 6" in line
    assert why in line
    assert f"{lost} bytes are gone" in line
    assert ("up to offset 15" in line) == ("checksum" in why)


def test_segments_behind_a_damage_are_reported(tmp_path, caplog):
    size = make_batch(3).size
    log = open_log(tmp_path, segment_bytes=2 * size)
    fill(log, 6)
    crash(log)
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    assert open_log(tmp_path, clean=False, segment_bytes=2 * size).end_offset == 3
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert "2 segments from offset 6 on are set aside" in lines[1]
