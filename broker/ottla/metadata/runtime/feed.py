"""The current image on one loop of this node; subscribers are notified of every change, in order.

MetadataMachine    on the control loop: committed entries go in
MetadataFeed       on the data loop: follows the machine (metadata.relay)
"""

import asyncio
import heapq
from collections.abc import Callable, Sequence

import msgspec
from google.protobuf.message import DecodeError

from ottla.errors import Refusal
from ottla.metadata.model.changes import Changes, compare
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, decode_batch
from ottla.raft.core.messages import Entry, EntryKind, Snapshot

__all__ = ["MetadataFeed", "MetadataMachine", "Subscriber"]

ENTRIES_READ_MAX = 10_000  # a leader sends far fewer before a commit

Subscriber = Callable[[Image, Image, Changes], None]
LeadershipSubscriber = Callable[[bool], None]
Follower = Callable[[Image, Changes], None]


class MetadataFeed:
    def __init__(self, cluster_id: str) -> None:
        self._image = Image(cluster_id)
        self._subscribers: list[Subscriber] = []
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._waiters = 0

    @property
    def image(self) -> Image:
        return self._image

    def subscribe(self, subscriber: Subscriber) -> None:
        """Called after every change with (old, new, changes); must not wait and must not raise."""
        self._subscribers.append(subscriber)

    async def reached(self, version: int) -> None:
        """Wait until the image has at least this version."""
        if self._image.version < version:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters += 1
            heapq.heappush(self._waiting, (version, self._waiters, waiter))
            await waiter

    def publish(self, image: Image, changes: Changes) -> None:
        """`changes` are those since the previous image."""
        old, self._image = self._image, image
        if changes:
            for subscriber in self._subscribers:
                subscriber(old, image, changes)
        while self._waiting and self._waiting[0][0] <= image.version:
            _, _, waiter = heapq.heappop(self._waiting)
            if not waiter.done():
                waiter.set_result(None)


class MetadataMachine(MetadataFeed):
    """The Raft driver's state machine."""

    def __init__(self, cluster_id: str) -> None:
        super().__init__(cluster_id)
        self._leadership: list[LeadershipSubscriber] = []
        self._followers: list[Follower] = []
        self._read: dict[int, tuple[Entry, Sequence[Record]]] = {}  # decoded entries that are not applied yet, by index
        self._read_snapshot: tuple[Snapshot, Image] | None = None  # a decoded snapshot that is not restored yet

    def on_leadership(self, subscriber: LeadershipSubscriber) -> None:
        self._leadership.append(subscriber)

    def on_version(self, follower: Follower) -> None:
        """Called with every image, after the subscribers, also if only its version differs."""
        self._followers.append(follower)

    def publish(self, image: Image, changes: Changes) -> None:
        super().publish(image, changes)
        for follower in self._followers:
            follower(image, changes)

    # -- for the driver

    def unreadable(self, entries: Sequence[Entry]) -> str | None:
        """Why one of a leader's entries cannot be applied here, or None. Decoded records are kept for `apply`."""
        for entry in entries:
            try:
                records = _records_of(entry)
            except (DecodeError, msgspec.DecodeError) as error:
                return f"metadata entry {entry.index} cannot be read: {error}"
            if any(record.WhichOneof("kind") is None for record in records):
                return f"metadata entry {entry.index} has a record of a kind that this version does not know"
            if len(self._read) < ENTRIES_READ_MAX:
                self._read[entry.index] = entry, records
        return None

    def unreadable_snapshot(self, snapshot: Snapshot) -> str | None:
        """Why a leader's snapshot cannot be restored here, or None. The decoded image is kept for `restore`."""
        try:
            image = Image.from_snapshot(snapshot.data)
        except Exception as error:  # inconsistent records may raise anything
            return f"metadata snapshot {snapshot.index} cannot be read: {error!r:.200}"
        if image.cluster_id != self._image.cluster_id:
            return f"metadata snapshot {snapshot.index} is of cluster {image.cluster_id:.100}"
        self._read_snapshot = snapshot, image
        return None

    def apply(self, entries: Sequence[Entry]) -> None:
        self.publish(*self._image.apply_batches((e.index, e.term, self._take(e)) for e in entries))
        if self._read and min(self._read) <= self._image.version:  # entries of an earlier leader, which were replaced
            self._read = {index: read for index, read in self._read.items() if index > self._image.version}

    def _take(self, entry: Entry) -> Sequence[Record]:
        read = self._read.pop(entry.index, None)
        return read[1] if read is not None and read[0] is entry else _records_of(entry)

    def restore(self, snapshot: Snapshot) -> None:
        read, self._read_snapshot = self._read_snapshot, None
        image = read[1] if read is not None and read[0] is snapshot else Image.from_snapshot(snapshot.data)
        if image.cluster_id != self._image.cluster_id:
            raise Refusal(
                f"the metadata is of cluster {image.cluster_id}, this node belongs to {self._image.cluster_id}; "
                "use another data directory"
            )
        self.publish(image, compare(self._image, image))

    def capture(self) -> Callable[[], bytes]:
        return self._image.to_snapshot

    def leadership(self, *, leads: bool) -> None:
        for subscriber in self._leadership:
            subscriber(leads)


def _records_of(entry: Entry) -> Sequence[Record]:
    if entry.kind is EntryKind.VOTERS:
        entry.voters()
    return decode_batch(entry.data) if entry.kind is EntryKind.DATA else ()
