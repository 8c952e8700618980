"""Deleting from the beginning, cutting off the end, swapping compacted segments in."""

import os
import shutil

import pytest
from ottla.errors import Code, KafkaError
from ottla.wire.batch import iterate
from support.logs import T0, SteppedClock, fill, make_batch, open_log, read_all, read_some, system_at

SIZE = make_batch(3).size
DAY_MS = 86_400_000


def segmented(tmp_path, batches=12, **settings):
    """Four segments of three batches each, nine offsets apart; each batch an hour later than the one before."""
    clock = SteppedClock()
    log = open_log(tmp_path, system=system_at(clock), segment_bytes=3 * SIZE, **settings)
    fill(log, batches, step_ms=3_600_000 // 2, timestamp=T0 - 10 * 3_600_000)
    return log, clock


def bases(log):
    return [segment.base_offset for segment in log.segments]


def offsets(log):
    return [batch.base_offset for batch in read_all(log)]


def test_by_size(tmp_path):
    log, clock = segmented(tmp_path, retention_bytes=7 * SIZE)
    assert bases(log) == [0, 9, 18, 27]
    [deleted] = log.delete_expired(clock.now_ms, log.end_offset)
    assert (deleted.base_offset, log.start_offset, bases(log)) == (0, 9, [9, 18, 27])
    assert offsets(log)[0] == 9
    assert not log.delete_expired(clock.now_ms, log.end_offset)


def test_by_age_of_the_newest_record(tmp_path):
    log, clock = segmented(tmp_path, retention_ms=DAY_MS)
    assert log.expired_segments(clock.now_ms, log.end_offset) == []
    clock.now_ms = log.segments[1].max_timestamp + DAY_MS + 1
    assert [segment.base_offset for segment in log.expired_segments(clock.now_ms, log.end_offset)] == [0, 9]
    assert bases(log) == [0, 9, 18, 27], "only listed, not deleted"
    log.delete_expired(clock.now_ms, log.end_offset)
    assert bases(log) == [18, 27]


def test_all_expired_leaves_an_empty_segment_at_the_end(tmp_path):
    log, clock = segmented(tmp_path, retention_ms=DAY_MS)
    clock.now_ms += 100 * DAY_MS
    assert len(log.delete_expired(clock.now_ms, log.end_offset)) == 4
    assert (bases(log), log.start_offset, log.end_offset) == ([36], 36, 36)
    assert log.delete_expired(clock.now_ms, log.end_offset) == []
    assert log.append(make_batch(1), leader_epoch=0).base_offset == 36


@pytest.mark.parametrize(("high_watermark", "left"), [(0, [0, 9, 18, 27]), (17, [9, 18, 27]), (18, [18, 27])])
def test_never_beyond_the_high_watermark(tmp_path, high_watermark, left):
    log, clock = segmented(tmp_path, retention_ms=DAY_MS)
    log.delete_expired(clock.now_ms + 100 * DAY_MS, high_watermark)
    assert bases(log) == left


@pytest.mark.parametrize("settings", [{"retention_ms": -1}, {"cleanup_policies": frozenset({"compact"})}])
def test_without_limit(tmp_path, settings):
    log, clock = segmented(tmp_path, retention_bytes=-1, **settings)
    assert log.expired_segments(clock.now_ms + 100 * DAY_MS, log.end_offset) == []


def test_deleted_files_wait_for_their_readers(tmp_path):
    log, clock = segmented(tmp_path, retention_bytes=0, file_delete_delay_ms=1000)
    held = log.segments[0]
    log.delete_expired(clock.now_ms, log.end_offset)
    assert os.path.exists(f"{log.folder}/00000000000000000000.log.deleted")
    assert [batch.base_offset for _, batch in held.batches()] == [0, 3, 6], "a reader that has it goes on"
    log.purge(clock.now_ms + 999)
    assert os.path.exists(f"{log.folder}/00000000000000000000.log.deleted")
    log.purge(clock.now_ms + 1000)
    assert not [name for name in os.listdir(log.folder) if name.endswith(".deleted")]


def test_delete_records(tmp_path):
    log, _ = segmented(tmp_path)
    log.advance_start(19)
    log.delete_below_start()
    assert (log.start_offset, bases(log)) == (19, [18, 27])
    assert log.epochs.entries == ((0, 19),)
    log.advance_start(5)
    assert log.start_offset == 19
    with pytest.raises(KafkaError) as refusal:
        read_some(log, 18)
    assert refusal.value.code == Code.offset_out_of_range
    assert next(iterate(read_some(log, 19))).base_offset == 18, "the whole batch"
    with pytest.raises(KafkaError) as refusal:
        log.advance_start(37)
    assert refusal.value.code == Code.offset_out_of_range
    log.close()
    assert open_log(tmp_path, log_start=19).start_offset == 19


@pytest.mark.parametrize("offset", [1, 9, 10, 20, 26, 27, 35])
def test_truncation_cuts_the_batch_that_holds_the_offset(tmp_path, offset):
    log, _ = segmented(tmp_path, 0, index_interval_bytes=0)
    for number in range(12):
        log.append(make_batch(3, producer=(5, 0, number * 3)), leader_epoch=number // 3)
    read_all(log)
    log.flush()
    log.truncate_to(offset)
    end = offset // 3 * 3
    assert (log.end_offset, log.flushed_offset) == (end, end)
    assert offsets(log) == list(range(0, end, 3))
    assert log.epochs.latest == (end - 1) // 9
    assert (log.producers.by_id[5].last_sequence if end else -1) == end - 1
    again = log.append(make_batch(3, producer=(5, 0, end), size=20), leader_epoch=7)
    assert (again.base_offset, log.epochs.entries[-1]) == (end, (7, end))
    log.close()
    for clean in (True, False):
        assert offsets(open_log(tmp_path, clean=clean, segment_bytes=3 * SIZE)) == list(range(0, end + 3, 3))


def test_truncating_beyond_the_end_does_nothing(tmp_path):
    log, _ = segmented(tmp_path)
    log.truncate_to(36)
    assert log.end_offset == 36


def test_truncation_to_before_the_log_starts_over(tmp_path):
    log, clock = segmented(tmp_path, retention_bytes=0)
    log.delete_expired(clock.now_ms, 27)
    assert log.start_offset == 27
    log.truncate_to(5)
    assert (log.start_offset, log.end_offset, log.producers.by_id, log.epochs.entries) == (5, 5, {}, ())
    assert log.append(make_batch(2), leader_epoch=3).base_offset == 5


def test_a_flush_that_a_truncation_overtakes_claims_nothing(tmp_path):
    log, _ = segmented(tmp_path)
    sync = log.epochs.save

    def truncated_meanwhile(disk):
        log.truncate_to(10)
        sync(disk)

    log.epochs.save = truncated_meanwhile
    assert log.flush() == 0


def clean_copy(log, base, kept):
    """`<base>.log.cleaned` with some batches of the log, as the cleaner leaves it."""
    with open(f"{log.folder}/{base:020d}.log.cleaned", "wb") as file:
        for batch in read_all(log):
            if batch.base_offset in kept:
                file.write(batch.data)


def test_replace_swaps_segments(tmp_path):
    log, _ = segmented(tmp_path)
    clean_copy(log, 0, {3, 9})
    new = log.replace(log.segments[0:2], 0)
    assert (bases(log), new.next_offset) == ([0, 18, 27], 18)
    assert offsets(log) == [3, 9, 18, 21, 24, 27, 30, 33]
    assert next(iterate(read_some(log, 13))).base_offset == 18, "reads pass over the hole"
    log.close()
    assert offsets(open_log(tmp_path, segment_bytes=3 * SIZE)) == [3, 9, 18, 21, 24, 27, 30, 33]


@pytest.mark.parametrize("kept", [{3, 9}, set()])
@pytest.mark.parametrize("offset", [13, 17])
def test_truncation_into_a_gap_that_compaction_left_ends_the_log_there(tmp_path, offset, kept):
    """A follower that did not end there would state the same position for ever."""
    log, _ = segmented(tmp_path)
    clean_copy(log, 0, kept)
    log.replace(log.segments[0:2], 0)
    log.truncate_to(offset)
    assert (log.end_offset, bases(log)) == (offset, [0])
    assert log.append(make_batch(3), leader_epoch=2).base_offset == offset
    assert offsets(log) == [*sorted(kept), offset]
    log.close()
    assert offsets(open_log(tmp_path, segment_bytes=3 * SIZE)) == [*sorted(kept), offset]


def test_replace_is_safe_at_every_step(tmp_path):
    """The folder as it is after each rename or removal; each must open as all of the old or all of the new."""
    log, _ = segmented(tmp_path / "original")
    old = offsets(log)
    clean_copy(log, 0, {3, 9})
    pictures = []
    disk = log.disk

    class Photographing:
        def rename(self, before, after):
            disk.rename(before, after)
            self.picture()

        def picture(self):
            pictures.append(tmp_path / f"picture{len(pictures)}")
            shutil.copytree(log.folder, pictures[-1] / "orders-0")

        def __getattr__(self, name):
            return getattr(disk, name)

    log.disk = log.files.disk = Photographing()
    log.disk.picture()
    log.replace(log.segments[0:2], 0)
    seen = []
    for picture in pictures:
        compacted = {"segment_bytes": 3 * SIZE, "cleanup_policies": frozenset({"compact"})}
        seen.append(offsets(open_log(picture, clean=False, **compacted)))
        assert seen[-1] in (old, [3, 9, 18, 21, 24, 27, 30, 33])
    assert seen[0] == old and seen[-1] != old


def test_after_truncation_readers_find_the_new_batches(tmp_path):
    log = open_log(tmp_path)
    fill(log, 6)
    for start in range(0, 18, 3):  # leaves a hint at every batch
        read_some(log, start, size=SIZE)
    log.truncate_to(9)
    log.append(make_batch(3, size=500), leader_epoch=1)
    log.append(make_batch(3, size=7), leader_epoch=1)
    assert [batch.base_offset for batch in iterate(read_some(log, 12))] == [12]


def test_after_truncation_the_largest_timestamp_is_of_what_is_left(tmp_path):
    log = open_log(tmp_path, index_interval_bytes=0)
    fill(log, 6)
    log.truncate_to(9)
    assert log.max_timestamp() == (8, T0 + 22, 0)
    assert log.offset_for_timestamp(T0 + 23) is None
    log.append(make_batch(3, timestamp=T0 + 25), leader_epoch=1)
    log.close()
    assert open_log(tmp_path).max_timestamp() == (11, T0 + 27, 1)
