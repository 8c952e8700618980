"""Records of share groups: what is written is read again, as Kafka 4.1.1 wrote it, and damaged ones are refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.coordination.core.records import UNREADABLE
from ottla.group.consumer.member import MemberState, Position, Subscription
from ottla.group.heartbeats.entries import Entry, GroupEpoch
from ottla.group.share.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    STATES,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    StatePartitions,
    TopicStates,
    decode,
    encode,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=20)
IDS = st.binary(min_size=16, max_size=16).filter(any)
PARTITIONS = st.frozensets(st.tuples(IDS, st.integers(0, 100)), max_size=10)
TOPICS = st.dictionaries(IDS, st.builds(TopicStates, TEXT, st.frozensets(st.integers(0, 50), max_size=5)), max_size=3)
STABLE = st.just(MemberState.STABLE)
VALUES = {
    GROUP_EPOCH: st.builds(GroupEpoch, INT32, INT64),
    MEMBER: st.builds(
        Subscription,
        rack_id=st.none() | TEXT,
        client_id=TEXT,
        client_host=TEXT,
        topics=st.frozensets(TEXT, max_size=5),
    ),
    TARGET_EPOCH: INT32,
    TARGET_ASSIGNMENT: PARTITIONS,
    CURRENT_ASSIGNMENT: st.builds(Position, INT32, INT32, STABLE, PARTITIONS),
    STATES: st.builds(StatePartitions, TOPICS, TOPICS, st.dictionaries(IDS, TEXT, max_size=3)),
}
KEYS = {kind: st.tuples(TEXT, TEXT) for kind in (MEMBER, TARGET_ASSIGNMENT, CURRENT_ASSIGNMENT)}
ENTRIES = st.one_of(
    *(st.builds(Entry, st.just(kind), KEYS.get(kind, st.tuples(TEXT)), st.none() | of) for kind, of in VALUES.items())
)

# Out of the offsets topic of Apache Kafka 4.1.1: one member, two partitions.
GENUINE = [
    (
        "000a0002673100166c70346b50656d7053574b515a41433943316e567941",
        "00000017636f6e736f6c652d73686172652d636f6e73756d65720b2f3132372e302e302e31020773686172656400",
    ),
    ("000b000773686172696e67", "00000000000136ca5fd32c21054900"),
    ("000c000773686172696e67", "00000000000100"),
    ("000d000773686172696e6700056669727374", "0000029bae9dde51a9439aa6819f67c5d76c650300000000000000010000"),
    (
        "000e000773686172696e6700056669727374",
        "0000000000020000000100029bae9dde51a9439aa6819f67c5d76c650300000000000000010000",
    ),
    ("000f000773686172696e67", "0000029bae9dde51a9439aa6819f67c5d76c650773686172656403000000000000000100010100"),
]


@given(ENTRIES)
def test_what_is_written_is_read_again(entry: Entry) -> None:
    assert decode(*encode(entry)) == entry


@pytest.mark.parametrize(("key", "value"), GENUINE)
def test_bytes_are_as_kafka_writes_them(key: str, value: str) -> None:
    record = bytes.fromhex(key), bytes.fromhex(value)
    entry = decode(*record)
    assert entry is not None
    assert encode(entry) == record


@given(ENTRIES, st.integers(0, 200))
def test_damaged_ones_are_refused(entry: Entry, cut: int) -> None:
    key, value = encode(entry)
    if value is None or cut >= len(value):
        return
    with pytest.raises(UNREADABLE):
        decode(key, value[:cut])


def test_a_version_that_nobody_knows_is_refused() -> None:
    key, value = encode(Entry(TARGET_EPOCH, ("g",), 3))
    with pytest.raises(UNREADABLE):
        decode(key, struct.pack(">h", 1) + (value or b"")[2:])
