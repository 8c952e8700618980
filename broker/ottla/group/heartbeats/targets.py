"""When the target assignment of a group is computed by a heartbeat, and when by a thread (KIP-1263, Kafka 4.3). Pure.

Up to INLINE_SIZE_MAX the heartbeat that needs a new target computes it. In larger groups heartbeats raise the group's
epoch and a thread computes the target, at most once per ASSIGNMENT_SECONDS_MIN; until then the old target applies. The
group may change during the computation. The target is applied nevertheless, for those members that still exist:
otherwise a group that always changes would never get one. Then the next computation starts.
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
    "ComputationSchedule",
    "Encode",
    "Kinds",
    "TargetInput",
    "TargetResult",
    "computed",
    "deferred",
    "entries_to_write",
    "is_large",
    "target_epoch_of",
]

INLINE_SIZE_MAX = 5000
"""Subscribed names, counted per member, plus partitions of those topics."""
ASSIGNMENT_SECONDS_MIN = 1.0
EPOCH_WITHOUT_TARGET = 1  # of the first members, before any target exists

Encode = Callable[[Entry], Record]


class Kinds(NamedTuple):
    """The types of a group's records: two of the group, one of each member."""

    group_epoch: int
    target_epoch: int
    member: int
    target: int
    current: int


class TargetInput(NamedTuple):
    """The input of a computation: immutable values of the group and the metadata."""

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


class TargetResult(NamedTuple):
    """`targets`: the new ones, as entries with their records. `rises`: the subscribed topics have changed."""

    standing: TargetInput
    metadata_hash: int
    rises: bool
    targets: Sequence[tuple[Entry, Record]]

    @property
    def has_changes(self) -> bool:
        return self.rises or self.standing.epoch > self.standing.target_epoch

    @property
    def epoch(self) -> int:
        return self.standing.epoch + self.rises


class ComputationSchedule:
    """When a group's next computation may start. `deferred`: a heartbeat left the target to it."""

    def __init__(self) -> None:
        self.deferred = False
        self._computing = False
        self._ended_at = float("-inf")

    def take(self, *, in_thread: bool, now: float) -> bool:
        self.deferred = in_thread
        if not in_thread or self._computing or now - self._ended_at < ASSIGNMENT_SECONDS_MIN:
            return False
        self._computing = True
        return True

    def end(self, now: float) -> None:
        self._computing, self._ended_at = False, now


def is_large(subscribed: Iterable[Sequence[frozenset[str]]], image: Image) -> bool:
    """`subscribed`: the sets of names of every member. Stops counting at the limit."""
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
    """Members of a group without a target join with a fixed epoch and an empty assignment, as in Kafka 4.3."""
    return max(target_epoch, EPOCH_WITHOUT_TARGET)


def deferred(kinds: Kinds, known: Known, *, target_epoch: int, changed: bool) -> list[Entry]:
    """The entries of a change in a large group: only its epoch rises; its target follows later."""
    entries, key = list[Entry](), (known.group_id,)
    reached = target_epoch_of(target_epoch)
    if changed or reached > target_epoch:
        epoch = max(known.epoch, reached) + 1
        entries.append(Entry(kinds.group_epoch, key, GroupEpoch(epoch, known.metadata_hash)))
    if reached > target_epoch:
        entries.append(Entry(kinds.target_epoch, key, reached))
    return entries


def computed(
    standing: TargetInput,
    names: Iterable[str],
    assign: Callable[[], Mapping[str, Partitions]],
    *,
    kinds: Kinds,
    encode: Encode,
    has_news: bool = False,
) -> TargetResult:
    """Runs in a thread. `has_news`: something other than the topics has changed."""
    fingerprint = metadata_hash(standing.image, names)
    rises = standing.epoch <= standing.target_epoch and (has_news or fingerprint != standing.metadata_hash)
    found = TargetResult(standing, fingerprint, rises, ())
    if not found.has_changes:
        return found
    targets = []
    for each, target in assign().items():
        if standing.targets.get(each) != target:
            entry = Entry(kinds.target, (standing.group_id, each), target)
            targets.append((entry, encode(entry)))
    return found._replace(targets=targets)


def entries_to_write(found: TargetResult, log: GroupState, kinds: Kinds, encode: Encode) -> list[tuple[Entry, Record]]:
    """The entries to write after a computation: targets of members that have left are omitted."""
    written = [each for one in found.targets if (each := _for_present_members(found.standing, log, *one, encode))]
    epoch = GroupEpoch(log.epoch + found.rises, found.metadata_hash)
    ends = [Entry(kinds.target_epoch, (log.group_id,), found.epoch), Entry(kinds.group_epoch, (log.group_id,), epoch)]
    return written + [(entry, encode(entry)) for entry in ends]


def _for_present_members(
    standing: TargetInput, log: GroupState, entry: Entry, record: Record, encode: Encode
) -> tuple[Entry, Record] | None:
    """A target goes to the static member that has replaced the one it was computed for."""
    member_id = entry.key[1]
    if member_id in log.members:
        return entry, record
    successor = log.static_member(standing.members[member_id].subscription.instance_id)
    if successor is None:
        return None
    entry = entry._replace(key=(log.group_id, successor.id))
    return entry, encode(entry)
