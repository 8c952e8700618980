"""A member of a share group that speaks request by request over a plain connection."""

import uuid
from datetime import timedelta
from typing import Any

from golden.share_groups import ShareConversation
from ottla.errors import Code
from ottla.ids import uuid_text
from support.frames import Connection
from support.process import BrokerProcess
from support.waiting import eventually

__all__ = ["NO_OPERATIONS", "Member", "batches"]
FINAL, LEAVE = -1, -1


class Member:
    """A member with a connection of its own; it keeps the epoch of its session, as clients do."""

    def __init__(self, broker: BrokerProcess, group: str, topic: str) -> None:
        self.connection = Connection(broker.port)
        self.talk = ShareConversation(self.connection)
        self.group, self.name, self.epoch = group, uuid_text(uuid.uuid4()), 0
        found = self.talk.told("metadata", 12, topics=({"topic_id": None, "name": topic},), **NO_OPERATIONS)
        self.topic_id = found.topics[0].topic_id
        self._join(topic)

    def _join(self, topic: str) -> None:
        who = {"group_id": self.group, "member_id": self.name, "rack_id": None}

        def assigned() -> Any:
            told = self.talk.told("share_group_heartbeat", 1, **who, member_epoch=0, subscribed_topic_names=(topic,))
            return told.assignment is not None and told.assignment.topic_partitions

        eventually(assigned, bool)

    def fetch(
        self,
        *indexes: int,
        acknowledge: tuple[tuple[int, int, tuple[int, ...]], ...] = (),
        epoch: int | None = None,
        records: int = 500,
        batch_size: int = 500,
        topic_id: Any = None,
    ) -> Any:
        parts = [{"partition_index": index, "acknowledgement_batches": ()} for index in indexes]
        if acknowledge:
            parts.append({"partition_index": 0, "acknowledgement_batches": batches(acknowledge)})
        return self.talk.told(
            "share_fetch",
            1,
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self._next() if epoch is None else epoch,
            max_wait=timedelta(milliseconds=200),
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=records,
            batch_size=batch_size,
            topics=({"topic_id": topic_id or self.topic_id, "partitions": tuple(parts)},) if parts else (),
            forgotten_topics_data=(),
        )

    def acknowledge(self, *spans: tuple[int, int, tuple[int, ...]], epoch: int | None = None, index: int = 0) -> Any:
        part = {"partition_index": index, "acknowledgement_batches": batches(spans)}
        return self.talk.told(
            "share_acknowledge",
            1,
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self._next() if epoch is None else epoch,
            topics=({"topic_id": self.topic_id, "partitions": (part,)},),
        )

    def acquire(self, **wishes: int) -> list[tuple[int, int, int]]:
        """The next records that come, and how often each was delivered."""

        def acquired() -> list[tuple[int, int, int]]:
            told = self.fetch(*(() if self.epoch else (0,)), **wishes)
            assert told.error_code is Code.none
            spans = [span for topic in told.responses for part in topic.partitions for span in part.acquired_records]
            return [(span.first_offset, span.last_offset, span.delivery_count) for span in spans]

        return eventually(acquired, bool)

    def counts(self) -> dict[int, int]:
        """The same by offset: Kafka does not join again what it split."""
        return {at: count for first, last, count in self.acquire() for at in range(first, last + 1)}

    def outcome(self, *spans: tuple[int, int, tuple[int, ...]], **fields: Any) -> Code:
        told = self.acknowledge(*spans, **fields)
        assert told.error_code is Code.none
        code: Code = told.responses[0].partitions[0].error_code
        return code

    def leave(self) -> None:
        """Its session ends, then its membership; what it holds is free again."""
        self.acknowledge(epoch=FINAL)
        who = {"group_id": self.group, "member_id": self.name, "rack_id": None, "subscribed_topic_names": None}
        assert self.talk.told("share_group_heartbeat", 1, **who, member_epoch=LEAVE).error_code is Code.none

    def _next(self) -> int:
        epoch, self.epoch = self.epoch, self.epoch + 1
        return epoch


NO_OPERATIONS = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}


def batches(spans: tuple[tuple[int, int, tuple[int, ...]], ...]) -> tuple[dict[str, Any], ...]:
    return tuple({"first_offset": a, "last_offset": b, "acknowledge_types": kinds} for a, b, kinds in spans)
