"""Batches put together from a header's fields and records: for compaction, recompression and internal topics. Pure."""

from crc32c import crc32c

from ottla.ports import Buffer
from ottla.wire.batch import (
    CHECKED,
    CODEC_MASK,
    HEADER_BYTES,
    MAGIC_AND_CRC,
    OVERHEAD_BYTES,
    STAMP,
    Batch,
)
from ottla.wire.compression import Codec, compress

__all__ = ["DELETE_HORIZON_BIT", "MAGIC", "assemble", "emptied", "rebuilt"]

MAGIC = 2
DELETE_HORIZON_BIT = 0x40  # the base timestamp says when tombstones and markers may go (KIP-534)
NO_TIMESTAMP = -1


def assemble(
    records: Buffer,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    count: int,
) -> bytes:
    """A whole batch; `records` are in the codec that `attributes` name."""
    checked = CHECKED.pack(
        attributes, last_offset_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count
    )
    crc = crc32c(records, crc32c(checked))
    length = HEADER_BYTES - OVERHEAD_BYTES + len(records)
    return b"".join((STAMP.pack(base_offset, length, leader_epoch), MAGIC_AND_CRC.pack(MAGIC, crc), checked, records))


def rebuilt(
    batch: Batch,
    records: Buffer,
    *,
    count: int,
    codec: int,
    level: int | None = None,
    delete_horizon_ms: int | None = None,
    max_timestamp: int | None = None,
) -> bytes:
    """`batch` with other records (given uncompressed). Its offsets, epochs and sequences stay, so that the producer's
    state read from it stays; with `delete_horizon_ms` the records' timestamps are relative to that."""
    attributes = batch.attributes & ~CODEC_MASK | codec
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    return assemble(
        compress(codec, records, level),
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        attributes=attributes,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=batch.base_timestamp if delete_horizon_ms is None else delete_horizon_ms,
        max_timestamp=batch.max_timestamp if max_timestamp is None else max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        count=count,
    )


def emptied(batch: Batch) -> bytes:
    """The header alone, for the producer's last sequence and epoch, as Kafka keeps it after compaction."""
    return assemble(
        b"",
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        attributes=batch.attributes & ~CODEC_MASK & ~DELETE_HORIZON_BIT | Codec.NONE,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        count=0,
    )
