"""Records of consumer groups: what is written is read again, and damaged ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.group.consumer.member import ClassicMember, MemberState, Position, Subscription
from ottla.group.consumer.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    REGEX,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    Entry,
    GroupEpoch,
    ResolvedRegex,
    decode,
    encode,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=20)
PARTITIONS = st.frozensets(st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 100)), max_size=10)
CLASSIC = st.builds(
    ClassicMember, INT32, st.lists(st.tuples(TEXT, st.binary(max_size=30)), min_size=1, max_size=3).map(tuple)
)
ENTRIES = st.one_of(
    st.builds(Entry, st.just(GROUP_EPOCH), st.tuples(TEXT), st.none() | st.builds(GroupEpoch, INT32, INT64)),
    st.builds(
        Entry,
        st.just(MEMBER),
        st.tuples(TEXT, TEXT),
        st.none()
        | st.builds(
            Subscription,
            instance_id=st.none() | TEXT,
            rack_id=st.none() | TEXT,
            client_id=TEXT,
            client_host=TEXT,
            topics=st.frozensets(TEXT, max_size=5),
            regex=st.none() | TEXT,
            rebalance_timeout_ms=INT32,
            assignor=st.none() | TEXT,
            classic=st.none() | CLASSIC,
        ),
    ),
    st.builds(Entry, st.just(TARGET_EPOCH), st.tuples(TEXT), st.none() | INT32),
    st.builds(Entry, st.just(TARGET_ASSIGNMENT), st.tuples(TEXT, TEXT), st.none() | PARTITIONS),
    st.builds(
        Entry,
        st.just(CURRENT_ASSIGNMENT),
        st.tuples(TEXT, TEXT),
        st.none()
        | st.builds(
            Position,
            INT32,
            INT32,
            st.sampled_from([MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS]),
            PARTITIONS,
            PARTITIONS,
        ),
    ),
    st.builds(
        Entry,
        st.just(REGEX),
        st.tuples(TEXT, TEXT),
        st.none() | st.builds(ResolvedRegex, st.frozensets(TEXT, max_size=5), INT64, INT64),
    ),
)


@given(ENTRIES)
def test_what_is_written_is_read(entry: Entry) -> None:
    assert decode(*encode(entry)) == entry


@given(ENTRIES, st.data())
def test_what_is_cut_short_is_refused(entry: Entry, data: st.DataObject) -> None:
    key, value = encode(entry)
    if value is not None:
        with pytest.raises((ValueError, IndexError, Exception)):
            decode(key, value[: data.draw(st.integers(0, len(value) - 1))])
    with pytest.raises((ValueError, IndexError, Exception)):
        decode(key[: data.draw(st.integers(0, len(key) - 1))], value)


def test_the_group_epoch_as_kafka_writes_it() -> None:
    key, value = encode(Entry(GROUP_EPOCH, ("g",), GroupEpoch(5, 1)))
    assert key == b"\0\3\0\1g"
    assert value == b"\0\0\0\0\0\5\x01\x00\x08" + (1).to_bytes(8)


def test_the_partition_counts_of_earlier_versions_are_read_over() -> None:
    assert decode(b"\0\4\0\1g", None) is None


def test_a_state_of_a_later_version_is_kept_as_unknown() -> None:
    key, value = encode(Entry(CURRENT_ASSIGNMENT, ("g", "m"), Position(1, 0)))
    assert value is not None
    entry = decode(key, value[:10] + b"\x09" + value[11:])
    assert entry is not None
    assert entry.value.state is MemberState.UNKNOWN
