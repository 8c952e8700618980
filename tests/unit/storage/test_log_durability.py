"""What a log has made durable when a checkpoint or a clean stop says so, and what it does where that was not kept."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from ottla.system import RealDisk
from support.logs import append_verified, contents, crash, fill, make_batch, make_marker, open_log, read_all, system_at

SIZE = make_batch(3).size


class SyncingDisk(RealDisk):
    """Remembers which files were made durable."""

    def __init__(self):
        self.synced = []

    def open(self, path, *, create=False):
        file = super().open(path, create=create)
        disk, sync = self, file.sync

        class Watched:
            def sync(self):
                disk.synced.append(os.path.basename(path))
                sync()

            def __getattr__(self, name):
                return getattr(file, name)

        return Watched()


def test_what_a_checkpoint_calls_durable_is_so_also_after_a_cut(tmp_path):
    """Sealed segments below the recovery point are trusted: one that was written again must be durable when sealed."""
    disk = SyncingDisk()
    log = open_log(tmp_path, system=system_at(disk=disk), segment_bytes=3 * SIZE)
    fill(log, 9, epoch=1)
    log.flush()
    log.truncate_to(6)
    disk.synced.clear()
    fill(log, 5, epoch=2)
    assert [segment.base_offset for segment in log.segments] == [0, 9, 18]
    assert [name for name in disk.synced if name.endswith(".log")] == [f"{base:020d}.log" for base in (0, 9)]
    crash(log)
    again = open_log(tmp_path, clean=False, recovery_point=27, segment_bytes=3 * SIZE)
    assert again.epochs.entries == ((1, 0), (2, 6))


def indexes(base):
    return {f"{base:020d}.{kind}" for kind in ("index", "timeindex")}


def test_what_a_clean_stop_leaves_is_durable(tmp_path):
    """The next start trusts the indexes: a power loss in between must not have torn them."""
    disk = SyncingDisk()
    log = open_log(tmp_path, system=system_at(disk=disk), index_interval_bytes=1)
    fill(log, 4)
    log.flush()
    log.close()
    assert indexes(0) <= set(disk.synced)


def test_who_was_aborted_is_durable_after_a_clean_stop(tmp_path):
    """Also when a flush had just made the marker itself durable."""
    disk = SyncingDisk()
    log = open_log(tmp_path, system=system_at(disk=disk))
    append_verified(log, make_batch(3, producer=(9, 0, 0), transactional=True))
    log.append(make_marker(commit=False), leader_epoch=0, from_client=False)
    log._durability.flushed_offset, log._durability._folder_changed = log.end_offset, False
    disk.synced.clear()
    log.close()
    assert f"{0:020d}.txnindex" in disk.synced


def test_a_clean_stop_waits_for_nothing_where_nothing_was_written(tmp_path):
    log = open_log(tmp_path, index_interval_bytes=1)
    fill(log, 4)
    log.close()
    disk = SyncingDisk()
    open_log(tmp_path, system=system_at(disk=disk), index_interval_bytes=1).close()
    assert disk.synced == []


@pytest.mark.parametrize("torn", [(0, 8), (1, SIZE + 5), (2, 3 * SIZE - 1), (2, 5 * SIZE)])
def test_an_index_that_leads_nowhere_is_rebuilt(tmp_path, torn):
    """Brokers of before left it behind at a clean stop without making it durable."""
    log = open_log(tmp_path, index_interval_bytes=1)
    fill(log, 4)
    before = contents(log)
    log.close()
    entry, position = torn
    path = f"{tmp_path}/orders-0/{0:020d}.index"
    with open(path, "r+b") as file:
        file.seek(entry * 8 + 4)
        file.write(position.to_bytes(4, "big"))
        file.truncate((entry + 1) * 8)
    again = open_log(tmp_path, index_interval_bytes=1)
    assert (again.end_offset, contents(again)) == (12, before)
    fill(again, 1)
    assert [batch.base_offset for batch in read_all(again)] == [0, 3, 6, 9, 12]


def test_indexes_of_a_segment_that_is_durable_already_are_so_when_it_is_sealed(tmp_path):
    """A checkpoint may name the segment's end from that moment on."""
    disk = SyncingDisk()
    log = open_log(tmp_path, system=system_at(disk=disk), segment_bytes=3 * SIZE, index_interval_bytes=1)
    fill(log, 3)
    log.flush()
    disk.synced.clear()
    fill(log, 1)
    assert [segment.base_offset for segment in log.segments] == [0, 9]
    assert indexes(0) <= set(disk.synced)


def test_indexes_that_are_rebuilt_for_a_reader_are_durable(tmp_path):
    log = open_log(tmp_path, segment_bytes=3 * SIZE, index_interval_bytes=1)
    fill(log, 6)
    log.close()
    os.remove(f"{tmp_path}/orders-0/{0:020d}.index")
    disk = SyncingDisk()
    again = open_log(tmp_path, system=system_at(disk=disk), segment_bytes=3 * SIZE, index_interval_bytes=1)
    disk.synced.clear()
    assert len(contents(again)) == 6
    assert indexes(0) <= set(disk.synced)


def test_a_log_that_was_never_cut_rolls_without_waiting_for_the_disk(tmp_path):
    disk = SyncingDisk()
    log = open_log(tmp_path, system=system_at(disk=disk), segment_bytes=3 * SIZE)
    fill(log, 12)
    assert disk.synced == []


class PausedAtTheCheck(int):
    """A count of cuts: who compares it lets the other thread go on, for a while."""

    def __new__(cls):
        made = super().__new__(cls, 0)
        made.checked, made.cut = Event(), Event()
        return made

    def __eq__(self, other):
        same = int(self) == int(other)
        self.checked.set()
        self.cut.wait(0.2)
        return same

    __hash__ = int.__hash__


def test_a_flush_claims_before_a_cut_or_not_at_all(tmp_path):
    """Never between: the cut would find the old claim, and the log would end below what is called durable."""
    log = open_log(tmp_path)
    fill(log, 4)
    cuts = log._durability.cuts = PausedAtTheCheck()
    with ThreadPoolExecutor(1) as pool:
        flushed = pool.submit(log.flush)
        assert cuts.checked.wait(10)
        log.truncate_to(3)
        cuts.cut.set()
        flushed.result()
    assert log.end_offset == 3
    assert log.flushed_offset <= log.end_offset


@pytest.mark.parametrize(("flush_messages", "expected"), [(1, 18), (12, 18), (13, 6), (2**63 - 1, 6)])
def test_what_was_found_after_a_crash_is_durable_where_appends_have_to_be(tmp_path, flush_messages, expected):
    """A killed process leaves batches in the page cache. With flush.messages=1 a replica must not count them as its own
    when the next power loss takes them."""
    disk = SyncingDisk()
    log = open_log(tmp_path)
    fill(log, 2)
    log.flush()
    fill(log, 4)
    crash(log)
    again = open_log(
        tmp_path, system=system_at(disk=disk), clean=False, recovery_point=6, flush_messages=flush_messages
    )
    assert (again.flushed_offset, again.end_offset) == (expected, 18)
    assert (f"{0:020d}.log" in disk.synced) == (expected == 18)
