"""Members of share groups that speak kio to the handlers of one broker, over real logs and a persister in memory."""

import dataclasses
import datetime
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from kio.schema.share_acknowledge.v1 import request as acknowledge_v1
from kio.schema.share_fetch.v1 import request as fetch_v1
from kio.static.primitive import i32Timedelta
from ottla.api.share_results import LeaderHints
from ottla.coordination.coordinator import Surroundings
from ottla.ids import uuid_text
from ottla.metadata.decisions.features import SHARE_VERSION
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import config_record, feature_record
from ottla.metadata.model.state import ResourceType
from ottla.share.core.messages import ShareKey
from ottla.share.host import ShareHost
from support.calls import call_of, handle, read
from support.replica_hosts import HostFleet, run
from support.share_memory import MemoryPersister

FETCH, ACKNOWLEDGE = 78, 79
GROUP = "readers"
GAP, ACCEPT, RELEASE, REJECT = range(4)
Spans = list[tuple[int, int, tuple[int, ...]]]
"""First and last offset, acknowledge types."""


class ShareNode:
    """The parts of a node that the two handlers use."""

    def __init__(self, fleet: HostFleet, broker_id: int, persister: MemoryPersister | None = None) -> None:
        broker = fleet.brokers[broker_id]
        self.fleet = fleet
        self.replicas = broker.host
        self.system = broker.system
        self.settings = broker.settings
        self.persister = persister or MemoryPersister()
        around = Surroundings(
            config=cast(Any, None),
            settings=broker.settings,
            system=broker.system,
            feed=cast(Any, self),
            replicas=broker.host,
            controller=cast(Any, None),
        )
        self.shares = ShareHost(around, self.persister)

    @property
    def image(self) -> Image:
        return self.fleet.image

    def turn_on(self) -> None:
        self.fleet.apply(feature_record(name=SHARE_VERSION, level=1))

    def set_group(self, key: str, value: str, group: str = GROUP) -> None:
        self.fleet.apply(config_record(resource_type=ResourceType.GROUP, resource_name=group, key=key, value=value))

    async def ask(self, request: Any, on_close: dict[object, Callable[[], None]]) -> Any:
        call = call_of(request.__api_key__, request.__version__, on_close)
        return await handle(
            read(request),
            call,
            shares=self.shares,
            leader_hints=LeaderHints(self.replicas, cast(Any, self)),
            config={"fetch.max.bytes": 1 << 20},
            clock=self.system.clock,
        )


class ShareMember:
    """Keeps its session's epoch, as clients do. `wait_ms` is for fetches."""

    def __init__(self, node: ShareNode, name: str, *, topic: str = "orders", group: str = GROUP) -> None:
        self.node = node
        self.name = uuid_text(uuid.uuid5(uuid.NAMESPACE_OID, name))
        self.group = group
        self.topic_id = node.image.topics[topic].id
        self.epoch = 0
        self.on_close: dict[object, Callable[[], None]] = {}

    async def fetch(
        self,
        *indexes: int,
        acknowledge: dict[int, Spans] | None = None,
        forget: tuple[int, ...] = (),
        epoch: int | None = None,
        records: int = 100,
        batch_size: int = 100,
        wait_ms: int = 100,
        min_bytes: int = 1,
        topic_id: Any = None,
    ) -> Any:
        topic_id = topic_id or self.topic_id
        given = acknowledge or {}
        parts = tuple(
            fetch_v1.FetchPartition(
                partition_index=index, acknowledgement_batches=_batches(fetch_v1, given.get(index, []))
            )
            for index in dict.fromkeys((*indexes, *given))
        )
        request = fetch_v1.ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self._epoch(epoch),
            max_wait=i32Timedelta.parse(datetime.timedelta(milliseconds=wait_ms)),
            min_bytes=min_bytes,
            max_records=records,
            batch_size=batch_size,
            topics=(fetch_v1.FetchTopic(topic_id=topic_id, partitions=parts),) if parts else (),
            forgotten_topics_data=(fetch_v1.ForgottenTopic(topic_id=topic_id, partitions=forget),) if forget else (),
        )
        return await self.node.ask(request, self.on_close)

    async def acknowledge(self, spans: Spans, *, index: int = 0, epoch: int | None = None) -> Any:
        part = acknowledge_v1.AcknowledgePartition(
            partition_index=index, acknowledgement_batches=_batches(acknowledge_v1, spans)
        )
        request = acknowledge_v1.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self._epoch(epoch),
            topics=(acknowledge_v1.AcknowledgeTopic(topic_id=self.topic_id, partitions=(part,)),),
        )
        return await self.node.ask(request, self.on_close)

    def hang_up(self) -> None:
        for close in list(self.on_close.values()):
            close()

    def _epoch(self, given: int | None) -> int:
        if given is None:
            given, self.epoch = self.epoch, self.epoch + 1
        return given


def _batches(module: Any, spans: Spans) -> tuple[Any, ...]:
    return tuple(
        module.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
        for first, last, kinds in spans
    )


def parts_of(response: Any) -> dict[int, Any]:
    """By partition; of answers about one topic."""
    return {part.partition_index: part for topic in response.responses for part in topic.partitions}


def acquired(response: Any, index: int = 0) -> list[tuple[int, int, int]]:
    part = parts_of(response).get(index)
    return [dataclasses.astuple(span) for span in part.acquired_records] if part is not None else []


def with_node(
    test: Callable[[ShareNode], Awaitable[None]], folder: Path, *, partitions: int = 1, brokers: tuple[int, ...] = (1,)
) -> None:
    """A broker that leads every partition of `orders`; a group begins where the log does."""

    async def main(fleet: HostFleet) -> None:
        await fleet.join(*brokers)
        await fleet.create("orders", *([brokers] * partitions))
        node = ShareNode(fleet, brokers[0])
        node.turn_on()
        node.set_group("share.auto.offset.reset", "earliest")
        await fleet.settled()
        try:
            await test(node)
        finally:
            await node.shares.stop()

    run(main, folder, group_share_min_record_lock_duration_ms="1000")


def key_of(node: ShareNode, index: int = 0) -> ShareKey:
    return ShareKey(GROUP, node.image.topics["orders"].id, index)


async def opened(node: ShareNode, name: str, **fields: int) -> ShareMember:
    member = ShareMember(node, name)
    await member.fetch(0, records=0, **fields)
    return member
