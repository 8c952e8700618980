"""A partition with very many producers: what a roll costs the loop, what recovery finds, what expiry holds."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from ottla.storage.core import producers as producing
from ottla.storage.core.producers import Producers
from ottla.storage.log import durability, snapshots
from ottla.storage.log.log import Log
from support.logs import T0, crash, make_batch, open_log

MANY = 30
SIZE = make_batch(1, producer=(1, 0, 0)).size
ENOUGH = durability.BYTES_PER_SNAPSHOT_BYTE * snapshots.ENTRY_BYTES * MANY


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "PRODUCERS_AT_ONCE_MAX", MANY - 1)


def log_of_many(folder: Path) -> Log:
    log = open_log(folder, segment_bytes=1 << 20)
    for producer in range(MANY):
        log.append(make_batch(1, producer=(producer, 0, 0)), leader_epoch=0)
    return log


def snapshot_offsets(folder: Path) -> list[int]:
    return snapshots.snapshot_offsets(name for name in os.listdir(folder / "orders-0") if name.endswith(".snapshot"))


def sequences(log: Log) -> dict[int, int]:
    return {one.id: one.last_sequence for one in log.producers.by_id.values()}


def test_a_roll_writes_nothing_and_the_next_flush_does(tmp_path: Path) -> None:
    """As they were at the roll, though some have gone on since."""
    log = log_of_many(tmp_path)
    log.roll()
    assert snapshot_offsets(tmp_path) == []
    for sequence in range(1, 4):
        log.append(make_batch(1, producer=(3, 0, sequence)), leader_epoch=0)
    log.flush()
    assert snapshot_offsets(tmp_path) == [MANY]
    found = snapshots.read_newest(log.disk, log.folder, start=0, end=MANY)
    assert found is not None
    assert {one.id: one.last_sequence for one in found[1]} == dict.fromkeys(range(MANY), 0)
    assert sequences(log) == dict.fromkeys(range(MANY), 0) | {3: 3}
    assert [one.last_sequence for one in log.producers.by_id[3].written] == [0, 1, 2, 3], "a retry is still known"


def test_rolls_in_a_row_write_few(tmp_path: Path) -> None:
    """The log grows several times as fast as its snapshots; recovery has so much more to read, and finds the same."""
    log = log_of_many(tmp_path)
    rolls = 3 * ENOUGH // SIZE
    for number in range(rolls):
        log.roll()
        log.append(make_batch(1, producer=(number % MANY, 0, number // MANY + 1)), leader_epoch=0)
        log.flush()
    offsets = snapshot_offsets(tmp_path)
    assert offsets[0] == MANY, "the first one is not put off"
    assert all((after - before) * SIZE >= ENOUGH for before, after in pairwise(offsets))
    assert 3 <= len(offsets) <= 4
    known = sequences(log)
    crash(log)
    again = open_log(tmp_path, clean=False, recovery_point=log.flushed_offset)
    assert sequences(again) == known


def test_a_clean_stop_writes_what_is_missing(tmp_path: Path) -> None:
    log = log_of_many(tmp_path)
    log.roll()
    log.close()
    assert snapshot_offsets(tmp_path) == [MANY]
    again = open_log(tmp_path)
    assert len(again.producers.by_id) == MANY


def test_a_cut_withdraws_it(tmp_path: Path) -> None:
    """Other batches may come to stand at its offset."""
    log = log_of_many(tmp_path)
    log.roll()
    log.truncate_to(5)
    log.flush()
    assert snapshot_offsets(tmp_path) == []


def test_a_cut_while_it_is_written_withdraws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of_many(tmp_path)
    log.roll()
    encode = snapshots.encode

    def cut_meanwhile(*args):  # type: ignore[no-untyped-def]
        log.truncate_to(5)
        return encode(*args)

    monkeypatch.setattr(snapshots, "encode", cut_meanwhile)
    log.flush()
    assert [name for name in os.listdir(log.folder) if ".snapshot" in name] == []


def test_retention_has_the_next_roll_write_one(tmp_path: Path) -> None:
    """The only one in the log went with its segment: silent producers must not be forgotten."""
    log = log_of_many(tmp_path)
    for number in range(2):
        log.roll()
        log.append(make_batch(1, producer=(number, 0, 1)), leader_epoch=0)
        log.flush()
    log.advance_start(MANY + 1)
    log.delete_below_start()
    log.roll()
    log.flush()
    assert snapshot_offsets(tmp_path) == [MANY + 2]
    crash(log)
    again = open_log(tmp_path, clean=False, log_start=MANY + 1, recovery_point=log.flushed_offset)
    assert len(again.producers.by_id) == MANY


def test_expiry_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two slices one of them writes, and stays."""
    monkeypatch.setattr(producing, "EXPIRED_PER_SLICE_MAX", 4)
    producers = Producers("orders-0")
    for producer in range(10):
        producers.update(make_batch(1, producer=(producer, 0, 0)), base_offset=producer, timestamp=T0)
    slices = producers.expiring(T0 + 100, 100)
    next(slices)
    assert set(producers.by_id) == set(range(4, 10))
    producers.update(make_batch(1, producer=(9, 0, 1)), base_offset=10, timestamp=T0 + 50)
    assert sum(1 for _ in slices) == 1
    assert set(producers.by_id) == {9}
