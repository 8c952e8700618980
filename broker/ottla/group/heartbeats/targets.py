"""The target assignment of a large group, which is worked out away from the loop (KIP-1263 of Kafka 4.3). Pure.

Up to INLINE_SIZE_MAX a heartbeat that needs a new target computes it. Beyond, heartbeats only let the group's epoch
rise and have the target computed, at most once per ASSIGNMENT_SECONDS_MIN; until it is there the old one holds. The
group may change meanwhile. A target of an earlier epoch is put in force all the same, as far as it speaks of members
that are still there: a group that always changes would never get one otherwise. The next computation follows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.coordination.core.effects import Record
from ottla.group.consumer.member import Member, Partitions
from ottla.group.consumer.state import GroupState
from ottla.group.consumer.topics import metadata_hash
from ottla.group.heartbeats.entries import Entry, GroupEpoch
from ottla.group.heartbeats.epochs import Known, Seen
from ottla.metadata.model.image import Image

__all__ = [
    "ASSIGNMENT_SECONDS_MIN",
    "Computed",
    "Encode",
    "Kinds",
    "Standing",
    "Turn",
    "computed",
    "deferred",
    "is_large",
    "settled",
    "target_epoch_of",
]

INLINE_SIZE_MAX = 5000
"""Names that members subscribe to, each counted once per member, and partitions of those topics."""
ASSIGNMENT_SECONDS_MIN = 1.0
EPOCH_WITHOUT_TARGET = 1  # what the first members join with, before anything is assigned

Encode = Callable[[Entry], Record]


class Kinds(NamedTuple):
    """The types of a group's records: of the group, and of each member."""

    group_epoch: int
    target_epoch: int
    member: int
    target: int
    current: int


class Standing(NamedTuple):
    """A group as a computation finds it: nobody changes these values."""

    group_id: str
    epoch: int
    metadata_hash: int
    target_epoch: int
    targets: Mapping[str, Partitions]
    members: Mapping[str, Member]
    seen: Seen

    @property
    def image(self) -> Image:
        assert self.seen.image is not None
        return self.seen.image


class Computed(NamedTuple):
    """`targets`: those that are new, as entries with their records. `rises`: the topics are not what they were."""

    standing: Standing
    metadata_hash: int
    rises: bool
    targets: Sequence[tuple[Entry, Record]]

    @property
    def is_news(self) -> bool:
        return self.rises or self.standing.epoch > self.standing.target_epoch

    @property
    def epoch(self) -> int:
        return self.standing.epoch + self.rises


class Turn:
    """When a group may have its target computed. `deferred`: it is left to a computation."""

    def __init__(self) -> None:
        self.deferred = False
        self._computing = False
        self._ended_at = float("-inf")

    def take(self, *, elsewhere: bool, now: float) -> bool:
        self.deferred = elsewhere
        if not elsewhere or self._computing or now - self._ended_at < ASSIGNMENT_SECONDS_MIN:
            return False
        self._computing = True
        return True

    def end(self, now: float) -> None:
        self._computing, self._ended_at = False, now


def is_large(subscribed: Iterable[Sequence[frozenset[str]]], image: Image) -> bool:
    """`subscribed`: for every member the sets of names that it asks for. Stops counting beyond the limit."""
    size, names = 0, set[str]()
    for each in subscribed:
        size += 1 + sum(map(len, each))
        if size > INLINE_SIZE_MAX:
            return True
        names.update(*each)
    for name in names:
        topic = image.topics.get(name)
        size += len(topic.partitions) if topic is not None else 0
    return size > INLINE_SIZE_MAX


def target_epoch_of(target_epoch: int) -> int:
    """Members of a group that has no target yet have an epoch to join with, and nothing assigned, as in Kafka 4.3."""
    return max(target_epoch, EPOCH_WITHOUT_TARGET)


def deferred(kinds: Kinds, known: Known, *, target_epoch: int, changed: bool) -> list[Entry]:
    """The entries of a large group that changes: its epoch rises, and its target follows."""
    entries, key = list[Entry](), (known.group_id,)
    reached = target_epoch_of(target_epoch)
    if changed or reached > target_epoch:
        epoch = max(known.epoch, reached) + 1
        entries.append(Entry(kinds.group_epoch, key, GroupEpoch(epoch, known.metadata_hash)))
    if reached > target_epoch:
        entries.append(Entry(kinds.target_epoch, key, reached))
    return entries


def computed(
    standing: Standing,
    names: Iterable[str],
    assign: Callable[[], Mapping[str, Partitions]],
    *,
    kinds: Kinds,
    encode: Encode,
    has_news: bool = False,
) -> Computed:
    """Runs in a thread. `has_news`: something else than topics is not what it was."""
    fingerprint = metadata_hash(standing.image, names)
    rises = standing.epoch <= standing.target_epoch and (has_news or fingerprint != standing.metadata_hash)
    found = Computed(standing, fingerprint, rises, ())
    if not found.is_news:
        return found
    targets = []
    for each, target in assign().items():
        if standing.targets.get(each) != target:
            entry = Entry(kinds.target, (standing.group_id, each), target)
            targets.append((entry, encode(entry)))
    return found._replace(targets=targets)


def settled(found: Computed, log: GroupState, kinds: Kinds, encode: Encode) -> list[tuple[Entry, Record]]:
    """What is written of a computation, for the group as it is now: who has gone gets no target."""
    written = [each for one in found.targets if (each := _for_who_is_there(found.standing, log, *one, encode))]
    epoch = GroupEpoch(log.epoch + found.rises, found.metadata_hash)
    ends = [Entry(kinds.target_epoch, (log.group_id,), found.epoch), Entry(kinds.group_epoch, (log.group_id,), epoch)]
    return written + [(entry, encode(entry)) for entry in ends]


def _for_who_is_there(
    standing: Standing, log: GroupState, entry: Entry, record: Record, encode: Encode
) -> tuple[Entry, Record] | None:
    """A static member may have taken the place of the one for whom the target was made."""
    member_id = entry.key[1]
    if member_id in log.members:
        return entry, record
    successor = log.static_member(standing.members[member_id].subscription.instance_id)
    if successor is None:
        return None
    entry = entry._replace(key=(log.group_id, successor.id))
    return entry, encode(entry)
