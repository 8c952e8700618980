"""The settings of a share group: its own ones over the broker's."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.config.group import group_setting

__all__ = ["BY_DURATION", "EARLIEST", "LATEST", "ShareSettings"]

EARLIEST, LATEST, BY_DURATION = "earliest", "latest", "by_duration:"
READ_COMMITTED = "read_committed"


class ShareSettings(NamedTuple):
    lock_ms: int
    reset: str
    """`reset` (share.auto.offset.reset) is earliest, latest, or by_duration: with a duration."""
    read_committed: bool

    @classmethod
    def of(cls, own: Mapping[str, str], broker: Callable[[str], Any]) -> "ShareSettings":
        return cls(
            lock_ms=group_setting("share.record.lock.duration.ms", own, broker),
            reset=group_setting("share.auto.offset.reset", own, broker),
            read_committed=group_setting("share.isolation.level", own, broker) == READ_COMMITTED,
        )
