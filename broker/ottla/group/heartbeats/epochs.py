"""When the epoch of a consumer or share group rises, and the entries of a new target assignment. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from ottla.group.consumer.member import Member, Partitions
from ottla.group.consumer.topics import metadata_hash
from ottla.group.heartbeats.entries import Entry, GroupEpoch
from ottla.metadata.model.image import Image

__all__ = ["Advance", "Known", "Removal", "Seen", "next_epoch", "target_entries"]


class Seen(msgspec.Struct, frozen=True):
    """The metadata that a group examined last, and for a share group the states of its partitions.

    Images share what did not change, so comparing identities is enough.
    """

    image: Image | None = None
    states: Any = None

    def is_current(self, image: Image, states: Any = None) -> bool:
        old = self.image
        same = old is not None and old.topics is image.topics and old.brokers is image.brokers
        return same and self.states is states


class Known(NamedTuple):
    """The part of a group's state that these decisions need."""

    group_id: str
    epoch: int
    metadata_hash: int
    targets: Mapping[str, Partitions]


class Advance(msgspec.Struct, frozen=True):
    """The member as it is once these entries are applied.

    `examined`: the metadata that the group's topics were compared with; None if they were not. `in_thread`: the group
    is large, so a thread computes its new target.
    """

    member: Member
    entries: list[Entry]
    examined: Seen | None = None
    in_thread: bool = False


class Removal(NamedTuple):
    """The entries that remove members; `examined` and `in_thread` as in `Advance`."""

    entries: list[Entry]
    examined: Seen | None
    in_thread: bool


def next_epoch(
    kind: int, known: Known, names: Callable[[], Iterable[str]], *, changed: bool, image: Image, seen: Seen
) -> tuple[int, list[Entry]]:
    """The epoch rises when subscriptions changed (`changed`), or when the subscribed topics did.

    `kind` is the record type of the group's epoch; `names` are all subscribed topics.
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
