"""A record that cannot be read is left out, whatever its decoder raises; the rest of its partition is served."""

import asyncio
import logging
import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ottla.coordination import loading
from ottla.coordination.core.effects import Effects
from ottla.coordination.core.records import Record, UnknownType
from ottla.coordination.loading import Loading
from ottla.coordination.shard import CoordinatorShard
from ottla.coordination.writing import WriteRules
from ottla.group.classic.group import Rules
from ottla.group.loading import GroupLoading
from ottla.group.offsets.records import CommittedOffset, offset_key, offset_value
from ottla.group.shard import Shard
from ottla.system import RealClock
from ottla.txn.core.states import State
from ottla.txn.core.transaction import Transaction
from ottla.txn.shard import TransactionShard
from support.raw_batches import enclosed, raw_record

COMPRESSED_WRONGLY = 1  # gzip, it says
NULL = struct.pack(">i", -1)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def group_record(members: bytes) -> Record:
    head = text("consumer") + struct.pack(">i", 1) + text("range") + text("m") + struct.pack(">q", -1)
    return b"\0\2" + text("odd"), b"\0\3" + head + members


def transaction_record(partitions: bytes) -> Record:
    head = struct.pack(">qhibi", 77, 0, 1000, 0, 1) + text("t")
    return b"\0\0" + text("odd"), b"\0\0" + head + partitions + struct.pack(">qq", 1, 1)


def a_member(assignment: bytes) -> bytes:
    member = text("m") + struct.pack(">h", -1) + text("c") + text("h") + struct.pack(">ii", 1000, 1000)
    return struct.pack(">i", 1) + member + struct.pack(">i", 0) + assignment


GOOD_OFFSET = offset_key("good", "t", 0), offset_value(CommittedOffset(5, -1, "", 0))
ODD_GROUPS = {
    "members null": group_record(NULL),
    "assignment null": group_record(a_member(NULL)),
    "group null": (b"\0\2" + struct.pack(">h", -1), group_record(a_member(struct.pack(">i", 0)))[1]),
    "offset of no group": (b"\0\1" + struct.pack(">h", -1) + text("t") + bytes(4), GOOD_OFFSET[1]),
    "empty key": (b"", b""),
    "empty value": (b"\0\2" + text("odd"), b""),
}
ODD_TRANSACTIONS = {
    "partitions null": transaction_record(NULL),
    "id null": (b"\0\0" + struct.pack(">h", -1), transaction_record(struct.pack(">i", 0))[1]),
}


def partition_of(*batches: bytes) -> Any:
    """What a shard's partition is for its loading."""
    data = b"".join(struct.pack(">q", offset) + batch[8:] for offset, batch in enumerate(batches))
    log = SimpleNamespace(start_offset=0, end_offset=len(batches))
    return SimpleNamespace(
        log=log, leader_epoch=0, view=object(), high_watermark=0, read=lambda **_: data, __str__=lambda: "p"
    )


def batch_of(record: Record) -> bytes:
    return enclosed(raw_record(0, record[1], key=record[0]), count=1)


def group_shard(partition: Any) -> Shard:
    return Shard(
        partition,
        clock=RealClock(),
        rules=Rules(new_id=str, wall_ms=lambda: 0),
        write_rules=WriteRules(),
        consumer_rules=cast(Any, lambda shard: None),
        share_rules=cast(Any, lambda shard: None),
        computing=cast(Any, None),
    )


def transaction_shard(partition: Any) -> TransactionShard:
    unused = cast(Any, None)
    return TransactionShard(
        partition, clock=RealClock(), delivery=unused, new_producer_id=unused, write_rules=WriteRules()
    )


@pytest.mark.parametrize("odd", ODD_GROUPS.values(), ids=ODD_GROUPS.keys())
def test_a_group_that_cannot_be_read(odd: Record) -> None:
    shard = group_shard(partition_of(batch_of(odd), batch_of(GOOD_OFFSET)))
    attempt = GroupLoading(shard, read_bytes_max=1 << 20)
    assert asyncio.run(attempt.run())
    shard.loaded()
    assert attempt.skipped == 1
    assert set(shard.groups) == {"good"}


@pytest.mark.parametrize("odd", ODD_TRANSACTIONS.values(), ids=ODD_TRANSACTIONS.keys())
def test_a_transaction_that_cannot_be_read(odd: Record) -> None:
    good = transaction_record(struct.pack(">ii", 1, 0))[1]
    shard = transaction_shard(partition_of(batch_of(odd), batch_of((b"\0\0" + text("good"), good))))
    attempt = Loading(shard, read_bytes_max=1 << 20)
    assert asyncio.run(attempt.run())
    shard.loaded()
    assert attempt.skipped == 1
    assert set(shard.transactions) == {"good"}
    assert shard.transactions["good"].partitions == {("t", 0)}


def test_a_transaction_without_partitions_may_have_null() -> None:
    value = b"\0\0" + struct.pack(">qhibi", 77, 0, 1000, 0, -1) + struct.pack(">qq", 1, 1)
    shard = transaction_shard(partition_of(batch_of((b"\0\0" + text("idle"), value))))
    assert asyncio.run(Loading(shard, read_bytes_max=1 << 20).run())
    assert not shard.transactions["idle"].partitions


def test_a_batch_that_does_not_open() -> None:
    broken = enclosed(b"not gzip", count=1, attributes=COMPRESSED_WRONGLY)
    shard = group_shard(partition_of(broken, batch_of(GOOD_OFFSET)))
    attempt = GroupLoading(shard, read_bytes_max=1 << 20)
    assert asyncio.run(attempt.run())
    assert attempt.skipped == 1
    assert set(shard.groups) == {"good"}


class Refusing(CoordinatorShard):
    """Cannot read anything."""

    holds = "records"

    def __init__(self, partition: Any, error: Exception) -> None:
        super().__init__(partition, clock=RealClock(), write_rules=WriteRules())
        self.error = error

    @property
    def count(self) -> int:
        return 0

    def replay(self, key: memoryview, value: memoryview | None) -> None:
        raise self.error

    def loaded(self) -> None: ...

    def unload(self) -> None: ...


@pytest.mark.parametrize(
    "error", [TypeError("null"), KeyError("a"), RecursionError(), AssertionError(), UnknownType("later")]
)
def test_whatever_is_raised(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Counted, and logged with a limit; a type that only a newer broker knows is none of both."""
    count = 3 * loading.LOGGED_PER_SHARD_MAX
    shard = Refusing(partition_of(*[batch_of(GOOD_OFFSET)] * count), error)
    attempt = Loading(shard, read_bytes_max=1 << 20)
    with caplog.at_level(logging.WARNING):
        assert asyncio.run(attempt.run())
    is_known = not isinstance(error, UnknownType)
    assert attempt.skipped == (count if is_known else 0)
    assert len(caplog.records) == (loading.LOGGED_PER_SHARD_MAX if is_known else 0)


def test_a_group_that_fails_when_it_begins_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    shard = group_shard(partition_of())
    begun = []

    class Odd:
        group_id, state = "odd", "Empty"

        def loaded(self, now: float) -> Effects:
            raise TypeError("odd")

        def unload(self) -> Effects:
            raise TypeError("odd")

    class Good(Odd):
        group_id = "good"

        def loaded(self, now: float) -> Effects:
            begun.append("loaded")
            return []

        def unload(self) -> Effects:
            begun.append("unloaded")
            return []

    shard.put_group(cast(Any, Odd()))
    shard.put_group(cast(Any, Good()))
    shard.loaded()
    assert not shard.loading
    shard.unload()
    assert begun == ["loaded", "unloaded"]
    assert "odd" in caplog.text


def test_a_transaction_that_fails_when_it_begins_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = transaction_shard(partition_of())
    sent = []

    def on_send(message: Transaction) -> None:
        if message.id == "odd":
            raise TypeError("odd")
        sent.append(message.id)

    monkeypatch.setattr(shard._runner, "_on_send", on_send)
    for name in ("odd", "good"):
        shard.transactions[name] = Transaction(
            id=name, producer_id=1, timeout_ms=1, updated_ms=1, state=State.PREPARE_COMMIT
        )
    shard.loaded()
    assert not shard.loading
    assert sent == ["good"]
