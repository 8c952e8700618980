"""Logs and batches for tests of storage."""

from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.system import RealClock, RealDisk, System
from ottla.wire.batch import Batch, iterate, parse
from ottla.wire.markers import Marker, marker_batch
from ottla.wire.records import Record, encode

T0 = 1_700_000_000_000


class SteppedClock(RealClock):
    """Wall time that only a test moves."""

    def __init__(self, now_ms: int = T0) -> None:
        self.now_ms = now_ms

    def wall_ms(self) -> int:
        return self.now_ms


def system_at(clock: SteppedClock | None = None, disk: RealDisk | None = None) -> System:
    return System(clock=clock or SteppedClock(), disk=disk or RealDisk())


def open_log(
    folder, *, clean=True, system=None, files=None, log_start=0, recovery_point=0, cleaned_to=None, **settings
) -> Log:
    system = system or system_at()
    return Log.open(
        f"{folder}/orders-0",
        settings=LogSettings(**settings),
        system=system,
        files=files or FileCache(system.disk, 16),
        clean=clean,
        log_start=log_start,
        recovery_point=recovery_point,
        cleaned_to=cleaned_to,
    )


def make_batch(count=3, *, timestamp=T0, producer=(-1, -1, -1), size=20, transactional=False) -> Batch:
    records = [Record(index, timestamp + index, b"key", bytes([65 + index % 26]) * size) for index in range(count)]
    return parse(encode(records, producer=producer, is_transactional=transactional))


def make_marker(*, commit=True, producer=(9, 0, -1), coordinator_epoch=0, timestamp=T0) -> Batch:
    key = b"\0\0" + int(commit).to_bytes(2, "big")
    value = b"\0\0" + coordinator_epoch.to_bytes(4, "big")
    record = Record(0, timestamp, key, value)
    return parse(encode([record], producer=producer, is_transactional=True, is_control=True))


def append_verified(log: Log, batch: Batch, *, epoch=0) -> int:
    """A transactional batch for which the coordinator has vouched; its first offset."""
    ticket = log.producers.verifications.begin_for(batch, adds_partitions=False, now_ms=T0)
    return log.append(batch, leader_epoch=epoch, ticket=ticket).base_offset


def end_transaction(log: Log, producer_id=9, *, commit: bool, producer_epoch=0, coordinator_epoch=0) -> int:
    marker = marker_batch(Marker(producer_id, producer_epoch, coordinator_epoch, commit), now_ms=T0)
    return log.append(marker, leader_epoch=0, from_client=False).base_offset


def fill(log: Log, batches: int, *, count=3, size=20, epoch=0, timestamp=T0, step_ms=10) -> None:
    for number in range(batches):
        log.append(make_batch(count, timestamp=timestamp + number * step_ms, size=size), leader_epoch=epoch)


def read_some(log: Log, start: int, *, end=None, size=1 << 20, whole_first=True) -> bytes:
    question = {"start": start, "end": log.end_offset if end is None else end}
    question |= {"size_bytes_max": size, "whole_first": whole_first}
    data = log.read(**question)
    return log.read_cold(**question) if data is None else data


def read_all(log: Log, *, size=1 << 20) -> list[Batch]:
    """Every batch, as a consumer would get them."""
    offset, found = log.start_offset, []
    while offset < log.end_offset:
        batches = list(iterate(read_some(log, offset, size=size)))
        assert batches, f"nothing at {offset} of {log.end_offset}"
        found.extend(batches)
        offset = batches[-1].last_offset + 1
    return found


def contents(log: Log) -> list[bytes]:
    return [bytes(batch.data) for batch in read_all(log)]


def crash(log: Log) -> None:
    """The process is gone: nothing is written any more."""
    log.close(clean=False)
