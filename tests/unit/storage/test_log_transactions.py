"""Transactions in a log: what is stable, who was aborted, and that crashes, truncation and copies agree on it."""

import os
import shutil

import pytest
from ottla.errors import Code, KafkaError
from ottla.storage.core.aborted import AbortedIndex, AbortedTransaction
from ottla.storage.log import aborted_index
from ottla.wire.batch import iterate
from ottla.wire.markers import Marker
from support.logs import T0, append_verified, end_transaction, fill, make_batch, open_log, read_some


def write(log, producer_id=9, sequence=0, *, count=2, epoch=0, size=20):
    batch = make_batch(count, producer=(producer_id, epoch, sequence), transactional=True, size=size)
    return append_verified(log, batch)


def committed(log, start=0, end=None, size=1 << 20):
    """(base offsets of the batches, aborted) as a read_committed reader gets them."""
    question = {"start": start, "end": log.last_stable_offset if end is None else end}
    question |= {"size_bytes_max": size, "whole_first": True}
    found = log.read_slice(**question) or log.read_slice_cold(**question)
    return [batch.base_offset for batch in iterate(found.data)], list(found.aborted)


def visible(log, size=1 << 20):
    """Base offsets of data batches that a consumer with read_committed shows, by the client's own algorithm."""
    offset, shown, end = log.start_offset, [], log.last_stable_offset
    while offset < end:
        found = log.read_slice_cold(start=offset, end=end, size_bytes_max=size, whole_first=True)
        coming, aborting = sorted(found.aborted, key=lambda one: one[1]), set()
        for batch in iterate(found.data):
            while coming and coming[0][1] <= batch.last_offset:
                aborting.add(coming.pop(0)[0])
            if batch.is_control:
                aborting.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborting):
                shown.append(batch.base_offset)
            offset = batch.last_offset + 1
    return shown


def test_nothing_of_an_open_transaction_is_stable(tmp_path):
    log = open_log(tmp_path)
    fill(log, 1)
    write(log)
    fill(log, 1)
    assert log.last_stable_offset == 3 and log.end_offset == 8
    assert committed(log) == ([0], [])


@pytest.mark.parametrize("commit", [True, False])
def test_the_marker_decides(tmp_path, commit):
    log = open_log(tmp_path)
    write(log)
    end_transaction(log, commit=commit)
    assert log.last_stable_offset == 3
    assert committed(log) == ([0, 2], [] if commit else [(9, 0)])
    assert visible(log) == ([0] if commit else [])


def test_the_marker_must_be_replicated_too(tmp_path):
    log = open_log(tmp_path)
    write(log)
    end_transaction(log, commit=True)
    assert [log.stable_below(watermark) for watermark in (0, 1, 2, 3)] == [0, 0, 0, 3]


def test_only_transactions_of_the_range_are_given(tmp_path):
    log = open_log(tmp_path)
    for number in range(4):
        write(log, sequence=2 * number)
        end_transaction(log, commit=False)
    first = len(read_some(log, 0, size=1))
    assert committed(log, size=first) == ([0], [(9, 0)])
    assert committed(log, start=3, end=6) == ([3, 5], [(9, 3)])
    assert committed(log)[1] == [(9, 0), (9, 3), (9, 6), (9, 9)]
    assert visible(log, size=first) == []


def test_interleaved_producers_and_a_marker_in_a_later_segment(tmp_path):
    log = open_log(tmp_path, segment_bytes=400)
    write(log, 9)
    write(log, 8)
    fill(log, 6)
    end_transaction(log, 8, commit=True)
    assert log.last_stable_offset == 0
    end_transaction(log, 9, commit=False)
    assert len(log.segments) > 2 and log.segments[0].next_offset <= 8
    assert committed(log, size=200) == ([0], [(9, 0)])
    assert 0 not in visible(log) and 2 in visible(log)
    assert not os.path.exists(log.segments[0].path(".txnindex"))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["nothing", "lost", "torn", "stale"])
def test_reopened(tmp_path, clean, damage):
    """A crash may leave any bytes in the index of a segment that was not flushed."""
    if clean and damage != "nothing":
        return
    log = open_log(tmp_path, segment_bytes=600)
    for number in range(8):
        write(log, 9, sequence=2 * number)
        write(log, 8, sequence=2 * number)
        end_transaction(log, 9, commit=number % 2 == 0)
        end_transaction(log, 8, commit=number % 3 == 0)
    write(log, 7)
    write(log, 9, sequence=16)
    expected = (visible(log), log.last_stable_offset, indexes(log))
    log.close(clean)
    for segment in log.segments:
        spoil(segment.path(".txnindex"), damage)
    again = open_log(tmp_path, clean=clean, segment_bytes=600)
    assert len(again.segments) > 2
    assert (visible(again), again.last_stable_offset, indexes(again)) == expected
    assert {one.id: one.transaction_start for one in again.producers.by_id.values()} == {7: 48, 8: -1, 9: 50}
    on_disk = aborted_index.read_all(again.disk, again.folder, [one.base_offset for one in again.segments])
    assert on_disk == [one for segment in again.segments for one in segment.aborted]


def indexes(log):
    return [list(segment.aborted) for segment in log.segments]


def all_aborted(log):
    return [one for segment in log.segments for one in segment.aborted]


def spoil(path, damage):
    if damage == "lost" and os.path.exists(path):
        os.remove(path)
    if damage == "torn" and os.path.exists(path):
        os.truncate(path, os.path.getsize(path) - 5)
    if damage == "stale":
        with open(path, "ab") as file:
            file.write(aborted_index.encode([AbortedTransaction(8, 0, 1, 2)]))


def test_a_flushed_segment_keeps_its_index_and_only_the_rest_is_rebuilt(tmp_path):
    log = open_log(tmp_path, segment_bytes=300)
    for number in range(6):
        write(log, sequence=2 * number)
        end_transaction(log, commit=False)
    expected = indexes(log)
    flushed = log.flush_sealed()
    log.close(clean=False)
    os.remove(log.active.path(".txnindex"))
    again = open_log(tmp_path, clean=False, recovery_point=flushed, segment_bytes=300)
    assert indexes(again) == expected and any(expected)


@pytest.mark.parametrize("cut", range(13))
def test_truncation_rolls_back_to_what_was_undecided_then(tmp_path, cut):
    log = open_log(tmp_path, segment_bytes=350)
    states = [(0, {}, [])]
    steps = [
        lambda: write(log, 9),
        lambda: write(log, 8),
        lambda: end_transaction(log, 9, commit=False),
        lambda: write(log, 9, sequence=2),
        lambda: end_transaction(log, 8, commit=False, producer_epoch=1),
        lambda: write(log, 8, epoch=1),
        lambda: end_transaction(log, 9, commit=True),
        lambda: end_transaction(log, 8, commit=False, producer_epoch=1),
    ]
    for step in steps:
        step()
        states.append((log.end_offset, facts(log), all_aborted(log)))
    end, producers, aborted = max(state for state in states if state[0] <= cut)
    log.truncate_to(cut)
    assert log.end_offset == end
    assert facts(log) == producers
    assert all_aborted(log) == aborted
    on_disk = aborted_index.read_all(log.disk, log.folder, [one.base_offset for one in log.segments])
    assert on_disk == aborted


def facts(log):
    return {one.id: (one.epoch, one.transaction_start, one.last_sequence) for one in log.producers.by_id.values()}


def test_a_copy_knows_the_same(tmp_path):
    leader = open_log(tmp_path / "leader", segment_bytes=500)
    for number in range(6):
        write(leader, 9, sequence=2 * number)
        write(leader, 8, sequence=2 * number)
        end_transaction(leader, 9, commit=number % 2 == 0)
        end_transaction(leader, 8, commit=False)
    write(leader, 7)
    copy = open_log(tmp_path / "copy", segment_bytes=700)
    position = 0
    while position < leader.end_offset:
        data = read_some(leader, position, size=400)
        copy.append_replicated(data, leader_epoch=0)
        position = copy.end_offset
    assert facts(copy) == facts(leader)
    assert visible(copy) == visible(leader)
    assert all_aborted(copy) == all_aborted(leader)
    assert copy.last_stable_offset == leader.last_stable_offset


def test_a_segment_takes_its_index_along(tmp_path):
    log = open_log(tmp_path, segment_bytes=200, file_delete_delay_ms=0)
    for number in range(4):
        write(log, sequence=2 * number)
        end_transaction(log, commit=False)
    gone = [segment for segment in log.segments if segment.next_offset <= 6]
    assert any(os.path.exists(segment.path(".txnindex")) for segment in gone)
    log.advance_start(6)
    log.delete_below_start()
    log.purge(T0 + 1)
    assert not any(os.path.exists(segment.path(".txnindex")) for segment in gone)
    assert committed(log, start=6)[1] == [(9, 6)] and committed(log, start=9)[1] == [(9, 9)]


def test_the_stable_offset_is_not_before_the_start(tmp_path):
    log = open_log(tmp_path)
    write(log)
    write(log, sequence=2)
    log.advance_start(3)
    assert log.last_stable_offset == 3
    log.close()
    assert open_log(tmp_path, log_start=3).last_stable_offset == 3


def test_a_marker_may_carry_a_bumped_epoch_and_the_old_one_is_refused_then(tmp_path):
    log = open_log(tmp_path)
    write(log, epoch=0)
    end_transaction(log, commit=True, producer_epoch=1)
    assert log.last_stable_offset == 3
    with pytest.raises(KafkaError) as refused:
        write(log, epoch=0, sequence=2)
    assert refused.value.code == Code.invalid_producer_epoch
    with pytest.raises(KafkaError) as refused:
        write(log, epoch=1, sequence=2)
    assert refused.value.code == Code.out_of_order_sequence_number
    assert write(log, epoch=1, sequence=0) == 3


def test_a_marker_without_a_transaction_is_harmless(tmp_path):
    log = open_log(tmp_path)
    end_transaction(log, commit=False)
    write(log)
    end_transaction(log, commit=True)
    end_transaction(log, commit=True)
    end_transaction(log, commit=False)
    assert log.last_stable_offset == log.end_offset == 6
    assert indexes(log) == [[]]
    assert visible(log) == [1]


@pytest.mark.parametrize(
    ("marker", "code"),
    [
        ({"producer_epoch": 2}, Code.invalid_producer_epoch),
        ({"producer_epoch": 3, "coordinator_epoch": 4}, Code.transaction_coordinator_fenced),
    ],
)
def test_markers_of_the_past_are_refused(tmp_path, marker, code):
    log = open_log(tmp_path)
    write(log, epoch=3)
    end_transaction(log, commit=True, producer_epoch=3, coordinator_epoch=5)
    write(log, epoch=3, sequence=2)
    with pytest.raises(KafkaError) as refused:
        end_transaction(log, commit=False, **marker)
    assert refused.value.code == code
    assert log.last_stable_offset == 3 and log.end_offset == 5


def test_a_marker_that_was_sent_for_an_earlier_transaction_is_late(tmp_path):
    """With an epoch for each transaction (KIP-890): the marker of epoch 4 ends what was written in epoch 3."""
    log = open_log(tmp_path)
    write(log, epoch=3)
    ending = Marker(producer_id=9, epoch=4, coordinator_epoch=0, commit=True)
    log.producers.refuse_late(ending)
    end_transaction(log, commit=True, producer_epoch=4)
    log.producers.refuse_late(ending)  # again, while nothing is open: no harm
    write(log, epoch=4)
    with pytest.raises(KafkaError) as refused:
        log.producers.refuse_late(ending)
    assert refused.value.code is Code.invalid_producer_epoch


def test_an_open_transaction_outlives_the_expiry_of_producers(tmp_path):
    log = open_log(tmp_path)
    write(log, 9)
    write(log, 8)
    end_transaction(log, 8, commit=True)
    log.producers.expire(T0 + 10**9, 1000)
    assert list(log.producers.by_id) == [9]


def first_batch(sequence=0, epoch=0):
    return make_batch(2, producer=(9, epoch, sequence), transactional=True)


def test_the_first_batch_needs_a_ticket_and_the_next_does_not(tmp_path):
    log = open_log(tmp_path)
    with pytest.raises(KafkaError) as refused:
        log.append(first_batch(), leader_epoch=0)
    assert refused.value.code == Code.invalid_txn_state and log.end_offset == 0
    append_verified(log, first_batch())
    log.append(first_batch(2), leader_epoch=0)
    assert log.end_offset == 4


def test_a_marker_that_comes_first_voids_the_ticket(tmp_path):
    log = open_log(tmp_path)
    ticket = log.producers.verifications.begin_for(first_batch(), adds_partitions=False, now_ms=T0)
    end_transaction(log, commit=False)
    with pytest.raises(KafkaError) as refused:
        log.append(first_batch(), leader_epoch=0, ticket=ticket)
    assert refused.value.code == Code.invalid_txn_state
    assert log.last_stable_offset == log.end_offset == 1


def test_the_marker_of_the_transaction_before_leaves_the_next_one_its_ticket(tmp_path):
    """With an epoch per transaction (KIP-890) the next one may ask while the last one's marker is still on its way."""
    log = open_log(tmp_path)
    append_verified(log, first_batch(epoch=4))
    ticket = log.producers.verifications.begin_for(first_batch(epoch=5), adds_partitions=True, now_ms=T0)
    end_transaction(log, commit=True, producer_epoch=5)
    log.append(first_batch(epoch=5), leader_epoch=0, ticket=ticket)
    assert log.producers.in_transaction(9, 5)


def test_the_marker_of_its_own_transaction_voids_the_ticket(tmp_path):
    log = open_log(tmp_path)
    ticket = log.producers.verifications.begin_for(first_batch(epoch=5), adds_partitions=True, now_ms=T0)
    end_transaction(log, commit=False, producer_epoch=6)
    with pytest.raises(KafkaError):
        log.append(first_batch(epoch=5), leader_epoch=0, ticket=ticket)


def test_a_later_batch_does_not_overtake_the_first(tmp_path):
    log = open_log(tmp_path)
    ticket = log.producers.verifications.begin_for(first_batch(0), adds_partitions=False, now_ms=T0)
    assert log.producers.verifications.begin_for(first_batch(2), adds_partitions=False, now_ms=T0) is ticket
    with pytest.raises(KafkaError) as refused:
        log.append(first_batch(2), leader_epoch=0, ticket=ticket)
    assert refused.value.code == Code.out_of_order_sequence_number


def test_index_entries_are_kafkas():
    one = AbortedTransaction(9, 100, 205, 150)
    data = aborted_index.encode([one])
    assert data.hex() == "0000" + "".join(number.to_bytes(8, "big").hex() for number in (9, 100, 205, 150))
    assert len(data) == 34


def test_search_stops_where_kafka_stops():
    index = AbortedIndex(
        [AbortedTransaction(1, 0, 10, 5), AbortedTransaction(2, 5, 20, 21), AbortedTransaction(3, 22, 30, 31)]
    )
    assert index.overlapping(0, 5) == ([(1, 0)], True)
    assert index.overlapping(0, 20) == ([(1, 0), (2, 5)], True)
    assert index.overlapping(11, 40) == ([(2, 5), (3, 22)], False)
    assert index.overlapping(31, 40) == ([], False)


def test_a_log_moved_by_hand_is_read_alike(tmp_path):
    """The files alone say everything."""
    log = open_log(tmp_path)
    write(log)
    end_transaction(log, commit=False)
    log.close()
    shutil.copytree(log.folder, tmp_path / "other" / "orders-0")
    assert visible(open_log(tmp_path / "other")) == []
