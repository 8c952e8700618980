"""What a leader sends is read before it is stored: an entry that cannot be applied would end the node."""

import uuid

import pytest
from ottla.metadata.model.records import encode_batch, partition_record, topic_record
from ottla.metadata.model.state import PartitionState
from ottla.metadata.runtime import feed
from ottla.metadata.runtime.feed import MetadataMachine
from ottla.pb import metadata_pb2 as pb
from ottla.raft.core.messages import Entry, EntryKind, Snapshot, Voter, encode_voters


def entry(index: int, data: bytes, kind: EntryKind = EntryKind.DATA) -> Entry:
    return Entry(index, 1, kind, data)


TOPIC = encode_batch([topic_record(name="t", topic_id=uuid.UUID(int=7))])


@pytest.mark.parametrize(
    "bad",
    [
        entry(2, b"\xff" * 20),
        entry(2, b"\xff" * 20, EntryKind.VOTERS),
        entry(2, b"\x0a\x00"),  # a record of no kind
    ],
)
def test_an_entry_that_cannot_be_applied_is_named(bad: Entry) -> None:
    assert "metadata entry 2 " in (MetadataMachine("c").unreadable([entry(1, TOPIC), bad]) or "")


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 20,
        pb.MetadataSnapshot(header=pb.SnapshotHeader(cluster_id="another")).SerializeToString(),
        pb.MetadataSnapshot(
            header=pb.SnapshotHeader(cluster_id="c"),
            records=[partition_record(uuid.UUID(int=9), PartitionState(0, (1,), (1,), 1))],  # of no topic
        ).SerializeToString(),
    ],
)
def test_a_snapshot_that_cannot_be_restored_is_named(data: bytes) -> None:
    bad = Snapshot(9, 1, (Voter(1),), data)
    assert "metadata snapshot 9 " in (MetadataMachine("c").unreadable_snapshot(bad) or "")


def test_a_snapshot_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, other = MetadataMachine("c"), MetadataMachine("c")
    other.apply([entry(1, TOPIC)])
    snapshot = Snapshot(1, 1, (Voter(1),), other.capture()())
    assert machine.unreadable_snapshot(snapshot) is None
    monkeypatch.setattr(feed.Image, "from_snapshot", None)
    machine.restore(snapshot)
    assert list(machine.image.topics) == ["t"]


def test_what_was_read_is_not_read_again_unless_it_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = MetadataMachine("c")
    begun = [entry(1, b"", EntryKind.LEADER), entry(2, TOPIC), entry(3, encode_voters((Voter(1),)), EntryKind.VOTERS)]
    assert machine.unreadable(begun) is None
    assert machine.unreadable([entry(4, TOPIC)]) is None
    read: list[bytes] = []
    monkeypatch.setattr(feed, "decode_batch", lambda data: read.append(data) or [])
    machine.apply(begun)
    assert (list(machine.image.topics), read) == (["t"], [])
    machine.apply([entry(4, b"other")])
    assert read == [b"other"]
