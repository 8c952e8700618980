"""Compaction against a model: the last record of every key stays, at its offset; tombstones go by their horizon."""

import tempfile
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.errors import KafkaError
from ottla.storage.compaction import rewriting as compaction
from ottla.storage.compaction.rewriting import Cleaning
from ottla.storage.core.aborted import AbortedTransaction
from ottla.storage.core.batch_filter import LastWritten
from ottla.storage.core.names import CLEANED, LOG, name
from ottla.storage.core.offset_map import OffsetMap, fingerprint
from ottla.storage.log import aborted_index
from ottla.storage.workers.worker import WorkerDied
from ottla.system import RealDisk
from ottla.wire import batch as batches
from ottla.wire.assembly import DELETE_HORIZON_BIT
from ottla.wire.batch import Batch, crc_matches
from ottla.wire.compression import Codec
from ottla.wire.records import Record, encode, iterate

DISK = RealDisk()
NOW, RETENTION = 1_000_000, 5_000
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"


class Folder:
    """A partition's folder: segments are lists of batches."""

    def __init__(self, path: str, segments: Sequence[Sequence[bytes]]) -> None:
        self.path = path
        self.segments = [[batches.parse(one) for one in segment] for segment in segments]
        self.sizes = [(segment[0].base_offset, sum(one.size for one in segment)) for segment in self.segments]
        self.upto = self.segments[-1][-1].last_offset + 1
        for segment in self.segments:
            with open(f"{path}/{name(segment[0].base_offset, LOG)}", "wb") as file:
                file.write(b"".join(one.data for one in segment))

    def clean(self, *, now_ms: int = NOW, segment_bytes: int = 1 << 30, **changes: object) -> tuple[list[Batch], int]:
        """What the cleaned files hold, and how far the cleaning reached."""
        facts: dict[str, object] = {
            "folder": self.path, "segments": self.sizes, "first_dirty": self.sizes[0][0], "upto": self.upto,
            "now_ms": now_ms, "delete_retention_ms": RETENTION, "index_interval_bytes": 100, "producers": {},
            "aborted": (), **changes,
        }  # fmt: skip
        cleaning = Cleaning(**facts)  # type: ignore[arg-type]
        reached = compaction.index(DISK, cleaning)
        transactions = None
        cleaned: list[Batch] = []
        below = [one for one in self.sizes if one[0] < reached]
        for bases in compaction.group(below, segment_bytes=segment_bytes, upto=self.upto):
            result = compaction.rewrite(DISK, cleaning, bases, transactions)
            transactions = result.transactions
            data = DISK.read_file(f"{self.path}/{name(bases[0], LOG)}{CLEANED}")
            assert len(data) == result.size
            cleaned += batches.iterate(data)
        return cleaned, reached


@pytest.fixture
def path() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def records_of(found: Sequence[Batch]) -> list[Record]:
    assert all(crc_matches(one) for one in found)
    return [record for one in found for record in iterate(one)]


def one(offset: int, key: bytes | None, value: bytes | None, **changes: object) -> bytes:
    return encode([Record(offset, 100 + offset, key, value)], **changes)  # type: ignore[arg-type]


# Histories: segments of batches of (key, value or tombstone)
keys = st.integers(0, 6).map(
    lambda number: b"k%d" % number if number < 4 else b"a key of more than 16 bytes: %d" % number
)
entries = st.tuples(keys, st.none() | st.binary(max_size=20))
histories = st.lists(
    st.lists(st.lists(entries, min_size=1, max_size=5), min_size=1, max_size=4), min_size=1, max_size=4
)


def encoded(
    history: list[list[list[tuple[bytes, bytes | None]]]], codec: int
) -> tuple[list[list[bytes]], list[Record]]:
    offset, segments, flat = 10, [], []
    for segment in history:
        out = []
        for entry in segment:
            records = [Record(offset + i, 500 + 3 * (offset + i), key, value) for i, (key, value) in enumerate(entry)]
            flat += records
            out.append(encode(records, codec=codec, leader_epoch=4))
            offset += len(records)
        segments.append(out)
    return segments, flat


def last_of_each_key(flat: list[Record]) -> list[Record]:
    last = {record.key: record.offset for record in flat}
    return [record for record in flat if last[record.key] == record.offset]


@settings(max_examples=60, deadline=None)
@given(histories, st.sampled_from(list(Codec)), st.sampled_from([1, 300, 1 << 30]))
def test_model(history: list, codec: Codec, segment_bytes: int) -> None:
    segments, flat = encoded(history, codec)
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(path, segments)
        cleaned, reached = folder.clean(segment_bytes=segment_bytes)
        assert reached == folder.upto
        assert records_of(cleaned) == last_of_each_key(flat)
        assert cleaned[-1].last_offset == flat[-1].offset, "the last offset must survive even without its record"
        assert all(one.leader_epoch == 4 for one in cleaned)
        again = Folder(tempfile.mkdtemp(dir=path), [[bytes(one.data) for one in cleaned]])
        assert [bytes(one.data) for one in again.clean(now_ms=NOW + RETENTION - 1)[0]] == [
            bytes(one.data) for one in cleaned
        ], "a clean log stays as it is until its tombstones' time has come"
        gone, _ = again.clean(now_ms=NOW + RETENTION)
        assert records_of(gone) == [record for record in last_of_each_key(flat) if record.value is not None]
        assert gone[-1].last_offset == flat[-1].offset


@settings(max_examples=40, deadline=None)
@given(histories, st.integers(1, 8))
def test_a_small_map_cleans_in_several_rounds(history: list, keys_max: int) -> None:
    segments, flat = encoded(history, Codec.NONE)
    with tempfile.TemporaryDirectory() as path:
        first_dirty, current = 10, [[one for segment in segments for one in segment]]
        for _ in range(1000):
            folder = Folder(tempfile.mkdtemp(dir=path), current)
            cleaned, reached = folder.clean(keys_max=keys_max, first_dirty=first_dirty)
            assert reached > first_dirty, "every round gets further"
            first_dirty, current = reached, [[bytes(one.data) for one in cleaned]]
            if reached == folder.upto:
                break
        assert records_of(cleaned) == last_of_each_key(flat)


def test_only_dirty_keys_are_counted_but_the_clean_part_is_cleaned(path: str) -> None:
    folder = Folder(path, [[one(0, b"a", b"1"), one(1, b"b", b"1")], [one(2, b"a", b"2"), one(3, b"c", b"1")]])
    cleaned, _ = folder.clean(first_dirty=2)
    assert [(record.offset, record.key) for record in records_of(cleaned)] == [(1, b"b"), (2, b"a"), (3, b"c")]


def test_keyless_records_go_as_in_kafka(path: str) -> None:
    folder = Folder(path, [[one(0, None, b"1"), one(1, b"", b"an empty key is a key")]])
    assert [record.key for record in records_of(folder.clean()[0])] == [b""]


def test_nothing_goes_beyond_the_reach_of_the_map(path: str) -> None:
    folder = Folder(path, [[one(0, b"a", b"1"), one(1, b"a", b"2"), one(2, b"b", b"1"), one(3, None, b"no key")]])
    cleaned, reached = folder.clean(keys_max=1)
    assert reached == 1
    assert [record.offset for record in records_of(cleaned)] == [0, 1, 2, 3]


def test_untouched_batches_are_copied_byte_for_byte(path: str) -> None:
    data = encode([Record(0, 5, b"a", b"1"), Record(1, 6, b"b", b"2")], codec=Codec.ZSTD, level=19)
    cleaned, _ = Folder(path, [[data]]).clean()
    assert [bytes(one.data) for one in cleaned] == [data]


def test_the_delete_horizon_is_written_as_in_kafka(path: str) -> None:
    cleaned, _ = Folder(path, [[encode([Record(0, 700, b"a", None), Record(1, 800, b"b", b"2")])]]).clean()
    (found,) = cleaned
    assert found.attributes & DELETE_HORIZON_BIT
    assert found.base_timestamp == NOW + RETENTION
    assert found.max_timestamp == 800
    assert [record.timestamp for record in iterate(found)] == [700, 800]


def test_the_last_batch_of_an_active_producer_stays_empty(path: str) -> None:
    folder = Folder(
        path,
        [
            [
                one(0, b"a", b"1", producer=(7, 1, 5)),
                one(1, b"a", b"2", producer=(8, 1, 0)),
                one(2, b"a", b"3"),
                one(3, b"z", b""),
            ]
        ],
    )
    cleaned, _ = folder.clean(producers={7: LastWritten(0, 1), 9: LastWritten(1, 1)})
    assert [(one.base_offset, one.count, one.producer_id, one.last_sequence) for one in cleaned] == [
        (0, 0, 7, 5),
        (2, 1, -1, -1),
        (3, 1, -1, -1),
    ]


def marker(offset: int, kind: bytes, producer_id: int) -> bytes:
    return one(offset, kind, bytes(6), producer=(producer_id, 0, -1), is_transactional=True, is_control=True)


def write(offset: int, key: bytes, producer_id: int) -> bytes:
    return one(offset, key, b"v%d" % offset, producer=(producer_id, 0, 0), is_transactional=True)


def summary(found: Sequence[Batch]) -> list[tuple[int, str]]:
    return [
        (one.base_offset, "marker" if one.is_control and one.count else "data" if one.count else "empty")
        for one in found
    ]


def test_aborted_records_go_at_once_and_do_not_supersede(path: str) -> None:
    folder = Folder(path, [[one(0, b"a", b"old")], [write(1, b"a", 7), marker(2, ABORT, 7), one(3, b"b", b"")]])
    aborted = [AbortedTransaction(7, 1, 2, 3)]
    cleaned, _ = folder.clean(aborted=aborted)
    assert summary(cleaned) == [(0, "data"), (2, "marker"), (3, "data")]
    assert aborted_index.read_all(DISK, path, []) == []
    with open(f"{path}/{name(0, '.txnindex')}{CLEANED}", "rb") as file:
        assert len(file.read()) == 34, "its marker is still there, so it stays in the index"


def test_a_marker_goes_after_its_records_and_its_horizon(path: str) -> None:
    folder = Folder(path, [[write(0, b"a", 7), marker(1, COMMIT, 7), one(2, b"a", b"newer"), one(3, b"b", b"")]])
    cleaned, _ = folder.clean()
    assert summary(cleaned) == [(1, "marker"), (2, "data"), (3, "data")]
    assert not cleaned[0].attributes & DELETE_HORIZON_BIT, "its records went in this very cleaning"
    second, _ = Folder(path, [[bytes(one.data) for one in cleaned]]).clean()
    assert second[0].attributes & DELETE_HORIZON_BIT
    again = Folder(path, [[bytes(one.data) for one in second]])
    assert summary(again.clean(now_ms=NOW + RETENTION - 1)[0]) == [(1, "marker"), (2, "data"), (3, "data")]
    assert summary(again.clean(now_ms=NOW + RETENTION)[0]) == [(2, "data"), (3, "data")]
    fenced, _ = again.clean(now_ms=NOW + RETENTION, producers={7: LastWritten(None, 0)})
    assert summary(fenced) == [(1, "empty"), (2, "data"), (3, "data")], "the epoch of an active producer stays"


def test_an_empty_transaction_is_not_taken_for_the_one_before(path: str) -> None:
    history = [write(0, b"a", 7), marker(1, COMMIT, 7), marker(2, COMMIT, 7), one(3, b"b", b"")]
    cleaned, _ = Folder(path, [history]).clean()
    assert [bool(one.attributes & DELETE_HORIZON_BIT) for one in cleaned] == [False, False, True, False]


def test_a_transaction_over_two_groups(path: str) -> None:
    folder = Folder(path, [[write(0, b"a", 7)], [write(1, b"b", 7), marker(2, ABORT, 7)], [one(3, b"c", b"")]])
    cleaned, _ = folder.clean(aborted=[AbortedTransaction(7, 0, 2, 3)], segment_bytes=1)
    assert summary(cleaned) == [(2, "marker"), (3, "data")]


def test_rotten_bytes_are_not_given_a_new_crc(path: str) -> None:
    data = bytearray(encode([Record(0, 0, b"a", b"x" * 9), Record(1, 0, b"b", b"y")]))
    data[75] ^= 1
    with pytest.raises(KafkaError, match="wrong CRC"):
        Folder(path, [[bytes(data), one(2, b"a", b"")]]).clean()


def test_a_scan_that_ends_early_is_an_error_not_a_loss(path: str) -> None:
    folder = Folder(path, [[one(0, b"a", b"1"), one(1, b"b", b"1")]])
    with open(f"{path}/{name(0, LOG)}", "r+b") as file:
        file.truncate(folder.sizes[0][1] - 3)
    with pytest.raises(KafkaError, match="holds no batch at position"):
        folder.clean()


def test_rewriting_without_its_map_says_so(path: str) -> None:
    folder = Folder(path, [[one(0, b"a", b"1")]])
    folder.clean()
    compaction.forget()
    cleaning = Cleaning(
        folder=path, segments=folder.sizes, first_dirty=0, upto=1, now_ms=0, delete_retention_ms=0,
        index_interval_bytes=1, producers={}, aborted=(),
    )  # fmt: skip
    with pytest.raises(WorkerDied, match="replaced"):
        compaction.rewrite(DISK, cleaning, [0], None)


def test_groups() -> None:
    segments = [(0, 40), (10, 50), (20, 30), (30, 200), (40, 1)]
    assert compaction.group(segments, segment_bytes=100, upto=50) == [[0, 10], [20], [30], [40]]
    far = [(0, 1), (2**31 - 1, 1), (2**31 + 5, 1)]
    assert compaction.group(far, segment_bytes=100, upto=2**31 + 9) == [[0], [2**31 - 1, 2**31 + 5]]
    assert compaction.group([], segment_bytes=100, upto=0) == []


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_fingerprints_differ_as_keys_do(one_key: bytes, other: bytes) -> None:
    assert (fingerprint(one_key) == fingerprint(other)) == (one_key == other)
    assert len(fingerprint(one_key)) <= 16


def test_map_bounds_its_keys() -> None:
    found = OffsetMap(start=0, keys_max=3)
    wide = batches.parse(encode([Record(i, 0, b"%d" % i, b"") for i in range(5)]))
    assert found.has_room(wide), "or nothing would ever be cleaned"
    found.add(wide)
    assert not found.has_room(batches.parse(one(5, b"5", b"")))
