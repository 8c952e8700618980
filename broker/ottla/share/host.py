"""The share-partitions of this broker: loaded by the first fetch, kept while members of the group fetch here.

A share-partition that is unused, or not led any more, is removed when its pending acknowledgements are written. Only
then may it be loaded again, so that the loaded state includes them.
"""

import asyncio
import logging
import uuid
from collections.abc import Iterable
from typing import Any

from ottla.coordination.coordinator import Surroundings
from ottla.errors import Code, KafkaError
from ottla.metadata.model.state import ResourceType
from ottla.replica.partition import Partition
from ottla.share.core.messages import Persister, ShareKey
from ottla.share.core.sessions import ShareSession, ShareSessions, TopicIdPartition
from ottla.share.hosted import HostedShare
from ottla.share.loading import load
from ottla.share.locks import Locks
from ottla.share.settings import ShareSettings

__all__ = ["ShareHost"]

log = logging.getLogger("ottla.share")


class ShareHost:
    def __init__(self, around: Surroundings, persister: Persister) -> None:
        self._settings = around.settings
        self._system = around.system
        self._feed = around.feed
        self._replicas = around.replicas
        self._persister = persister
        self._hosted: dict[ShareKey, HostedShare] = {}
        self._of_group: dict[str, dict[HostedShare, None]] = {}
        self._loading: dict[ShareKey, asyncio.Task[HostedShare]] = {}
        self._locks = Locks(self._system.clock)
        self.sessions = ShareSessions()

    def start(self) -> None:
        """Follow the metadata; share-partitions are loaded by fetches."""

    async def stop(self) -> None:
        """Pending acknowledgements stay unanswered."""
        self._locks.stop()
        tasks: list[asyncio.Task[Any]] = [*self._loading.values()]
        for hosted in list(self._hosted.values()):
            hosted.end()
            if hosted.writing is not None:
                tasks.append(hosted.writing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def settings_of(self, group_id: str) -> ShareSettings:
        return ShareSettings.of(self._feed.image.config(ResourceType.GROUP, group_id), self._settings.broker)

    # share-partitions

    def require(self, wanted: TopicIdPartition) -> Partition:
        """The topic's partition. KafkaError if it is not here or another broker leads it."""
        partition = self._replicas.require(*wanted)
        partition.require_leader()
        return partition

    def find(self, group_id: str, wanted: TopicIdPartition) -> HostedShare | None:
        """The share-partition if it is loaded and open. KafkaError as `require`."""
        self.require(wanted)
        hosted = self._hosted.get(_key(group_id, wanted))
        return hosted if hosted is not None and hosted.leads else None

    def load(self, group_id: str, wanted: TopicIdPartition) -> "asyncio.Task[HostedShare]":
        """Load it from its coordinator. KafkaError as `require`; the task raises those of Persister."""
        key, partition = _key(group_id, wanted), self.require(wanted)
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.ensure_future(self._load(key, partition))
            task.add_done_callback(lambda done: self._loaded(key, done))
        return task

    def _loaded(self, key: ShareKey, done: "asyncio.Task[HostedShare]") -> None:
        self._loading.pop(key, None)
        if not done.cancelled():
            done.exception()  # its waiters may have left

    async def _load(self, key: ShareKey, partition: Partition) -> HostedShare:
        last = self._hosted.get(key)
        if last is not None:
            last.end()
            if last.writing is not None:
                await asyncio.wait([last.writing])
        share = await load(
            key,
            partition,
            persister=self._persister,
            reset=self.settings_of(key.group_id).reset,
            system=self._system,
            records_max=self._settings.broker("group.share.partition.max.record.locks"),
            deliveries_max=self._settings.broker("group.share.delivery.count.limit"),
        )
        if not self.sessions.any_of(key.group_id):
            raise KafkaError(Code.share_session_not_found, f"no member of {key.group_id} fetches here any more")
        hosted = HostedShare(key, partition, share, persister=self._persister, locks=self._locks, on_end=self._ended)
        self._hosted[key] = hosted
        self._of_group.setdefault(key.group_id, {})[hosted] = None
        return hosted

    def _ended(self, hosted: HostedShare) -> None:
        """Keep it until its pending acknowledgements are written."""
        if hosted.writing is None:
            self._forget(hosted)
        else:
            hosted.writing.add_done_callback(lambda _: self._forget(hosted))

    def _forget(self, hosted: HostedShare) -> None:
        if self._hosted.get(hosted.key) is hosted:
            del self._hosted[hosted.key]
            group = self._of_group[hosted.key.group_id]
            del group[hosted]
            if not group:
                del self._of_group[hosted.key.group_id]

    # sessions

    def open_session(self, group_id: str, member_id: str, wanted: Iterable[TopicIdPartition]) -> ShareSession:
        sessions_max = self._settings.broker("group.share.max.share.sessions")
        return self.sessions.open(group_id, member_id, wanted, sessions_max=sessions_max)

    def close_session(self, session: ShareSession) -> None:
        """Release the member's records. The group's last session here also unloads its share-partitions.

        So the group's offsets may be altered while no member fetches.
        """
        if not self.sessions.end(session):
            return
        for wanted in session.holding:
            hosted = self._hosted.get(_key(session.group_id, wanted))
            if hosted is not None and hosted.leads:
                hosted.release(session.member_id)
        if not self.sessions.any_of(session.group_id):
            for hosted in list(self._of_group.get(session.group_id, ())):
                hosted.end()


def _key(group_id: str, wanted: TopicIdPartition) -> ShareKey:
    topic, index = wanted
    return ShareKey(group_id, uuid.UUID(bytes=topic), index)
