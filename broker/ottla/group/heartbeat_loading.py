"""How records of groups that live by heartbeats are put in force again while a shard loads."""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.group.heartbeats.entries import Entry
from ottla.group.heartbeats.group import HeartbeatGroup

__all__ = ["replay_entry"]

Kind = TypeVar("Kind", bound=HeartbeatGroup[Any])


def replay_entry(
    state: Any, entry: Entry | None, kind: type[Kind], new: Callable[[str], Kind], *, group_epoch: int
) -> None:
    """`state` is the shard; `group_epoch` the kind of record without which there is no group."""
    if entry is None:
        return
    group_id = entry.key[0]
    if entry.kind == group_epoch and entry.value is None:
        state.forget_group(group_id, kind.type)
        return
    group = state.groups.get(group_id)
    if not isinstance(group, kind):
        if entry.value is None:
            return
        group = state.groups[group_id] = new(group_id)
    group.log.apply(entry)
    group.written = state.replayed_offset
