"""Idempotent producers: tables of what is accepted, repeated, refused."""

import os

import pytest
from ottla.errors import Code, KafkaError
from ottla.storage.core.producers import Producers, end_marker
from ottla.storage.log import snapshots
from ottla.system import RealDisk
from support.logs import T0, make_batch, make_marker

MAX = 2**31 - 1
FENCED, DISORDER = Code.invalid_producer_epoch, Code.out_of_order_sequence_number


def noted(*batches, start=0):
    """Producers that saw these (count, epoch, sequence) of producer 5."""
    producers, offset = Producers("orders-0"), start
    for count, epoch, sequence in batches:
        batch = make_batch(count, producer=(5, epoch, sequence))
        producers.update(batch, base_offset=offset, timestamp=T0)
        offset += count
    return producers


def ask(producers, count, epoch, sequence, **question):
    batch = make_batch(count, producer=(5, epoch, sequence))
    return producers.check(batch, offset=producers.end_offset, **({"from_client": True} | question))


@pytest.mark.parametrize(
    ("before", "next_batch"),
    [
        ([], (3, 0, 0)),
        ([], (3, 0, 77)),  # nothing is known of it any more: any sequence will do
        ([(3, 0, 0)], (2, 0, 3)),
        ([(3, 0, 0)], (2, 1, 0)),
        ([(3, 0, MAX - 2)], (2, 0, 0)),
        ([(3, 0, MAX - 1)], (2, 0, 1)),
        ([(1, 0, MAX)], (2, 0, 0)),
    ],
)
def test_accepted(before, next_batch):
    assert ask(noted(*before), *next_batch) is None


@pytest.mark.parametrize(
    ("before", "next_batch", "code"),
    [
        ([(3, 0, 0)], (2, 0, 4), DISORDER),
        ([(3, 0, 0)], (2, 0, 2), DISORDER),
        ([(3, 0, 0)], (2, 0, 0), DISORDER),  # same first sequence, another length: no retry
        ([(3, 0, 0)], (2, 1, 3), DISORDER),
        ([(3, 4, 0)], (2, 3, 3), FENCED),
        ([(1, 0, MAX)], (2, 0, 1), DISORDER),
        ([(1, 0, number) for number in range(6)], (1, 0, 0), DISORDER),  # only five are remembered
    ],
)
def test_refused(before, next_batch, code):
    with pytest.raises(KafkaError) as refusal:
        ask(noted(*before), *next_batch)
    assert refusal.value.code == code
    assert "orders-0" in refusal.value.message


@pytest.mark.parametrize("number", range(1, 6))
def test_a_retry_of_one_of_the_last_five_is_told_where_it_went(number):
    producers = noted(*((2, 0, 2 * one) for one in range(6)), start=100)
    earlier = ask(producers, 2, 0, 2 * number)
    assert (earlier.first_offset, earlier.last_offset) == (100 + 2 * number, 101 + 2 * number)


def test_a_retry_that_wrapped():
    producers = noted((4, 0, MAX - 1))
    assert ask(producers, 4, 0, MAX - 1).first_offset == 0


def test_a_new_epoch_forgets_the_batches_of_the_old():
    producers = noted((2, 0, 0), (2, 1, 0))
    with pytest.raises(KafkaError):
        ask(producers, 2, 0, 0)
    assert len(producers.by_id[5].written) == 1


def test_a_coordinators_writes_have_no_sequences():
    producers = noted((1, 3, -1))
    assert ask(producers, 1, 3, -1, from_client=False) is None
    with pytest.raises(KafkaError) as refusal:
        ask(producers, 1, 2, -1, from_client=False)
    assert refusal.value.code == FENCED


def test_expiry_spares_open_transactions():
    producers = noted((1, 0, 0))
    producers.update(make_batch(1, producer=(6, 0, 0), transactional=True), base_offset=1, timestamp=T0)
    producers.expire(T0 + 999, 1000)
    assert set(producers.by_id) == {5, 6}
    producers.expire(T0 + 1000, 1000)
    assert set(producers.by_id) == {6}


def transactional(*events):
    """Producers after "7" (a batch of producer 7), "c7" or "a7" (its marker), one offset each."""
    producers, completed = Producers("orders-0"), []
    for offset, event in enumerate(events):
        who = (int(event[-1]), 0, -1 if event[0] in "ca" else offset)
        is_marker = event[0] in "ca"
        batch = make_marker(commit=event[0] == "c", producer=who) if is_marker else None
        batch = batch or make_batch(1, producer=who, transactional=True)
        completed.append(producers.update(batch, base_offset=offset, timestamp=T0))
    return producers, [one for one in completed if one]


@pytest.mark.parametrize(
    ("events", "high_watermark", "stable"),
    [
        (["1"], 1, 0),
        (["1", "1", "2"], 3, 0),
        (["1", "c1"], 2, 2),
        (["1", "c1"], 1, 0),
        (["1", "2", "c1"], 3, 1),
        (["1", "2", "a2"], 3, 0),
        (["1", "2", "a2", "c1", "2"], 5, 4),
        (["c1"], 1, 1),
    ],
)
def test_last_stable_offset(events, high_watermark, stable):
    producers, _ = transactional(*events)
    assert producers.last_stable_offset(high_watermark) == stable


def test_what_the_transaction_index_needs():
    _, [first, second] = transactional("1", "2", "a2", "c1")
    assert first == (2, 1, 2, True, 0)
    assert second == (1, 0, 3, False, 4)


def test_a_transaction_admits_only_its_own():
    producers, _ = transactional("1")
    with pytest.raises(KafkaError) as refusal:
        producers.check(make_batch(1, producer=(1, 0, 1)), offset=1, from_client=True)
    assert refusal.value.code == Code.invalid_txn_state


def test_a_replaced_coordinator_is_fenced():
    producers = Producers("orders-0")
    producers.update(make_marker(coordinator_epoch=4), base_offset=0, timestamp=T0)
    stale = make_marker(coordinator_epoch=3)
    with pytest.raises(KafkaError) as refusal:
        producers.check_marker(stale, end_marker(stale))
    assert refusal.value.code == Code.transaction_coordinator_fenced


def test_snapshot_bytes_are_kafkas():
    producers = noted((3, 2, MAX - 1), start=10)
    data = snapshots.encode(producers.by_id.values())
    assert data[:2] == b"\0\1" and data[6:10] == b"\0\0\0\1"
    fields = [(5, 8), (2, 2), (0, 4), (12, 8), (2, 4), (T0, 8), (-1, 4), (-1, 8)]
    assert data[10:] == b"".join(value.to_bytes(size, "big", signed=True) for value, size in fields)
    [again] = snapshots.decode(data)
    assert list(again.written) == list(producers.by_id[5].written)


def test_a_torn_snapshot_is_passed_over(tmp_path):
    disk, folder = RealDisk(), str(tmp_path)
    for offset in (3, 6, 9):
        snapshots.write(disk, folder, offset, noted((offset, 0, 0)).by_id.values())
    (tmp_path / "00000000000000000006.snapshot").write_bytes(b"\0\1torn")
    offset, [producer] = snapshots.read_newest(disk, folder, start=0, end=8)
    assert (offset, producer.last_sequence) == (3, 2)
    assert snapshots.snapshot_offsets(os.listdir(folder)) == [3, 6, 9], "reading changes nothing"
    snapshots.remove_newer(disk, folder, offset)
    assert snapshots.snapshot_offsets(os.listdir(folder)) == [3]
    assert snapshots.read_newest(disk, folder, start=3, end=8) is None


def test_every_flipped_bit_of_a_snapshot_is_seen():
    data = snapshots.encode(noted((3, 0, 0)).by_id.values())
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 4
        with pytest.raises(ValueError):
            snapshots.decode(bytes(damaged))
    for size in range(len(data)):
        with pytest.raises(ValueError):
            snapshots.decode(data[:size])
