"""Producer snapshots: `<offset>.snapshot` has the producers at that offset, in Kafka's format 1."""

from collections.abc import Iterable
from struct import Struct, error

from crc32c import crc32c

from ottla.ports import Disk
from ottla.storage.core import names
from ottla.storage.core.producers import Producer, Written
from ottla.wire.batch import SEQUENCE_MAX

__all__ = [
    "ENTRY_BYTES",
    "UNFINISHED",
    "decode",
    "encode",
    "path",
    "read_newest",
    "remove_newer",
    "snapshot_offsets",
    "write",
]

HEADER = Struct(">hIi")  # version, CRC-32C of what follows it, number of entries
ENTRY = Struct(">qhiqiqiq")
ENTRY_BYTES = ENTRY.size
CHECKED_FROM = 6
VERSION = 1
UNFINISHED = names.DELETED  # recovery removes such files


def encode(producers: Iterable[Producer]) -> bytes:
    entries = [_entry(producer) for producer in producers]
    checked = len(entries).to_bytes(4, "big") + b"".join(entries)
    return VERSION.to_bytes(2, "big") + crc32c(checked).to_bytes(4, "big") + checked


def _entry(producer: Producer) -> bytes:
    _, sequence, first, last, _ = producer.last or (-1, -1, -1, -1, -1)
    return ENTRY.pack(
        producer.id,
        producer.epoch,
        sequence,
        last,
        last - first,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.transaction_start,
    )


def decode(data: bytes) -> list[Producer]:
    """ValueError if it is no complete snapshot."""
    try:
        version, crc, count = HEADER.unpack_from(data)
        if version != VERSION or crc != crc32c(data[CHECKED_FROM:]) or len(data) != HEADER.size + count * ENTRY.size:
            raise ValueError("producer snapshot is torn or of an unknown version")
        return [_producer(*fields) for fields in ENTRY.iter_unpack(data[HEADER.size :])]
    except error as problem:
        raise ValueError(f"producer snapshot is torn: {problem}") from None


def _producer(
    producer_id: int,
    epoch: int,
    sequence: int,
    offset: int,
    delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_start: int,
) -> Producer:
    first_sequence = (sequence - delta) & SEQUENCE_MAX if sequence >= 0 else sequence
    last = Written(first_sequence, sequence, offset - delta, offset, timestamp)
    return Producer(
        producer_id,
        epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        transaction_start=transaction_start,
        written=[last] if offset >= 0 else [],
    )


def path(folder: str, offset: int) -> str:
    return f"{folder}/{names.name(offset, names.SNAPSHOT)}"


def write(disk: Disk, folder: str, offset: int, producers: Iterable[Producer], *, suffix: str = "") -> str:
    """Write without a sync: a torn snapshot fails its CRC, and recovery uses an older one. Returns the path."""
    target = path(folder, offset) + suffix
    file = disk.open(target, create=True)
    try:
        file.truncate(0)
        file.append([encode(producers)])
    finally:
        file.close()
    return target


def snapshot_offsets(file_names: Iterable[str]) -> list[int]:
    found = [names.offset_of(name) for name in file_names if name.endswith(names.SNAPSHOT)]
    return sorted(offset for offset in found if offset is not None)


def read_newest(disk: Disk, folder: str, *, start: int, end: int) -> tuple[int, list[Producer]] | None:
    """The newest valid snapshot inside the log, with its offset. Changes nothing."""
    for offset in reversed(snapshot_offsets(disk.names(folder))):
        if start < offset <= end:
            try:
                return offset, decode(disk.read_file(path(folder, offset)))
            except (ValueError, FileNotFoundError, IsADirectoryError):  # torn, removed meanwhile, or no file
                continue
    return None


def remove_newer(disk: Disk, folder: str, offset: int) -> None:
    """Remove snapshots beyond `offset`: of truncated records, or damaged."""
    for each in snapshot_offsets(disk.names(folder)):
        if each > offset:
            disk.remove(path(folder, each))
