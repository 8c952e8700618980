"""Kafka's DumpLogSegments reads what transactions leave on the disk: control batches, .txnindex, producer snapshots."""

import re
from pathlib import Path

import pytest
from support.dump import dump
from support.logs import append_verified, end_transaction, make_batch, open_log


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with committed, aborted and open transactions, in several segments."""
    log = open_log(tmp_path_factory.mktemp("files"), segment_bytes=600)
    for number in range(5):
        append_verified(log, make_batch(2, producer=(9, number, 0), transactional=True))
        append_verified(log, make_batch(2, producer=(8, 0, 2 * number), transactional=True))
        end_transaction(log, 9, commit=number % 2 == 0, producer_epoch=number + 1, coordinator_epoch=7)
        end_transaction(log, 8, commit=False, coordinator_epoch=7)
    append_verified(log, make_batch(2, producer=(9, 5, 0), transactional=True))
    log.close()
    return Path(log.folder)


def files(folder: Path, suffix: str) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.endswith(suffix))


def test_control_batches(folder: Path) -> None:
    text = dump(files(folder, ".log"))
    assert len(re.findall(r"isTransactional: true isControl: true .*isvalid: true", text)) == 10
    kinds = re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)", text)
    assert kinds.count(("COMMIT", "7")) == 3 and kinds.count(("ABORT", "7")) == 7


def test_aborted_indexes(folder: Path) -> None:
    found = files(folder, ".txnindex")
    assert len(found) > 1
    text = dump(found, deep=False)
    entries = re.findall(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", text)
    assert [tuple(map(int, entry)) for entry in entries][:3] == [(8, 2, 5, 6), (9, 6, 10, 8), (8, 8, 11, 12)]
    assert len(entries) == 7


def test_producer_snapshot_with_an_open_transaction(folder: Path) -> None:
    text = dump(files(folder, ".snapshot")[-1:], deep=False)
    assert re.search(
        r"producerId: 9 producerEpoch: 5 coordinatorEpoch: 7 currentTxnFirstOffset: OptionalLong\[30\]", text
    )
    assert re.search(
        r"producerId: 8 producerEpoch: 0 coordinatorEpoch: 7 currentTxnFirstOffset: OptionalLong.empty", text
    )
