"""When the epoch of a group of heartbeats rises, and how a new target assignment is written. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from ottla.group.consumer.member import Member, Partitions
from ottla.group.consumer.topics import metadata_hash
from ottla.group.heartbeats.entries import Entry, GroupEpoch
from ottla.metadata.model.image import Image

__all__ = ["Advance", "Known", "Removal", "Seen", "next_epoch", "target_entries"]


class Seen(msgspec.Struct, frozen=True):
    """The metadata that a group last examined, and the states of partitions if it is a share group.

    Images share what did not change, so identity is enough.
    """

    image: Image | None = None
    states: Any = None

    def is_current(self, image: Image, states: Any = None) -> bool:
        old = self.image
        same = old is not None and old.topics is image.topics and old.brokers is image.brokers
        return same and self.states is states


class Known(NamedTuple):
    """What a group is known by so far: of its state, no more than is asked for here."""

    group_id: str
    epoch: int
    metadata_hash: int
    targets: Mapping[str, Partitions]


class Advance(msgspec.Struct, frozen=True):
    """How a member stands when these entries are in force.

    `examined`: with what the group's topics were compared, None when they were not. `elsewhere`: the group is too large
    for a new target to be worked out here.
    """

    member: Member
    entries: list[Entry]
    examined: Seen | None = None
    elsewhere: bool = False


class Removal(NamedTuple):
    """What is written when members go; `examined` and `elsewhere` as `Advance` has them."""

    entries: list[Entry]
    examined: Seen | None
    elsewhere: bool


def next_epoch(
    kind: int, known: Known, names: Callable[[], Iterable[str]], *, changed: bool, image: Image, seen: Seen
) -> tuple[int, list[Entry]]:
    """It rises when members ask for other topics (`changed`), or when those they ask for are not what they were.

    `kind` is the record type of the group's epoch, `names` are all topics asked for.
    """
    if not changed and seen.is_current(image):
        return known.epoch, []
    fingerprint = metadata_hash(image, names())
    if not changed and fingerprint == known.metadata_hash:
        return known.epoch, []
    epoch = known.epoch + 1
    return epoch, [Entry(kind, (known.group_id,), GroupEpoch(epoch, fingerprint))]


def target_entries(kinds: tuple[int, int], known: Known, targets: Mapping[str, Partitions], epoch: int) -> list[Entry]:
    """`kinds` are the record types of a member's target and of the target's epoch."""
    of_member, of_epoch = kinds
    changed = {each: target for each, target in targets.items() if known.targets.get(each) != target}
    entries = [Entry(of_member, (known.group_id, each), target) for each, target in changed.items()]
    return [*entries, Entry(of_epoch, (known.group_id,), epoch)]
