"""What the data directories of tests/versions have in common: settings, names, and producers that speak request by
request, so that one process begins a transaction and another one ends it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ottla.wire.records import Record, encode
from support.observed import Groups, Talk
from support.sharing import ONE_BROKER
from support.waiting import eventually

__all__ = ["GROUPS", "OPEN", "PENDING", "SETTINGS", "TRANSACTIONAL_IDS", "Session", "begin_session"]

# Nothing expires that a test wants to see; snapshots of the metadata come early.
SETTINGS = {
    **ONE_BROKER,
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transactional.id.expiration.ms": str((1 << 31) - 1),
    "log.retention.ms": "-1",
    "log.message.timestamp.after.max.ms": str((1 << 63) - 1),
    "log.index.size.max.bytes": "4096",
    "offsets.retention.minutes": str((1 << 31) - 1),
    "group.initial.rebalance.delay.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
GROUPS = Groups(classic=("classic", "classic-held", "pending"), consumer=("modern", "modern-held"), share=("sharing",))
TRANSACTIONAL_IDS = ("committing", "left-open")
OPEN, PENDING = "left-open", "pending"
TIMEOUT = timedelta(seconds=60)


@dataclass(frozen=True)
class Session:
    """A producer's id and epoch, as JSON keeps them."""

    producer_id: int
    producer_epoch: int

    def add(self, talk: Talk, topic: str, group: str) -> None:
        """To the open transaction: a partition of a topic, and the offsets of a group."""
        who = {"transactional_id": OPEN, "producer_id": self.producer_id, "producer_epoch": self.producer_epoch}
        old = {f"v3_and_below_{name}": value for name, value in who.items()}
        place = {"name": topic, "partitions": (0,)}
        (told,) = talk.told("add_partitions_to_txn", 3, **old, v3_and_below_topics=(place,))[
            "results_by_topic_v3_and_below"
        ]
        assert told["results_by_partition"][0]["partition_error_code"] == 0, told
        assert talk.told("add_offsets_to_txn", 3, **who, group_id=group)["error_code"] == 0

    def commit_offset(self, talk: Talk, topic: str, group: str, offset: int) -> None:
        who = {"transactional_id": OPEN, "producer_id": self.producer_id, "producer_epoch": self.producer_epoch}
        one = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "in a transaction"}
        told = talk.told("txn_offset_commit", 3, **who, group_id=group, topics=({"name": topic, "partitions": (one,)},))
        assert told["topics"][0]["partitions"][0]["error_code"] == 0, told

    def write(
        self, talk: Talk, topic: str, values: Sequence[str], *, sequence: int, time_ms: int, transactional: bool = False
    ) -> dict[str, Any]:
        """The partition's answer."""
        records = [Record(offset, time_ms, None, value.encode()) for offset, value in enumerate(values)]
        batch = encode(
            records, producer=(self.producer_id, self.producer_epoch, sequence), is_transactional=transactional
        )
        data = {"name": topic, "partition_data": ({"index": 0, "records": batch},)}
        told = talk.told(
            "produce",
            9,
            transactional_id=OPEN if transactional else None,
            acks=-1,
            timeout=TIMEOUT,
            topic_data=(data,),
        )
        answer: dict[str, Any] = told["responses"][0]["partition_responses"][0]
        return answer

    def end(self, talk: Talk, *, commit: bool) -> int:
        """The code of the answer."""
        who = {"transactional_id": OPEN, "producer_id": self.producer_id, "producer_epoch": self.producer_epoch}
        code: int = talk.told("end_txn", 3, **who, committed=commit)["error_code"]
        return code


def begin_session(talk: Talk, transactional_id: str | None) -> Session:
    """Once the coordinator is there."""

    def told() -> Any:
        asked = {"transactional_id": transactional_id, "producer_id": -1, "producer_epoch": -1}
        return talk.told("init_producer_id", 4, **asked, transaction_timeout=TIMEOUT)

    answer = eventually(told, lambda one: bool(one["error_code"] == 0))
    return Session(answer["producer_id"], answer["producer_epoch"])
