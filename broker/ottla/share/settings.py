"""What a share group may set for itself, over the broker's own settings."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.config.group import group_setting

__all__ = ["BY_DURATION", "EARLIEST", "LATEST", "ShareSettings"]

EARLIEST, LATEST, BY_DURATION = "earliest", "latest", "by_duration:"
READ_COMMITTED = "read_committed"


class ShareSettings(NamedTuple):
    lock_ms: int
    reset: str
    """Where a group begins that has no offset yet: earliest, latest, or by_duration: and how long ago."""
    read_committed: bool

    @classmethod
    def of(cls, own: Mapping[str, str], broker: Callable[[str], Any]) -> "ShareSettings":
        return cls(
            lock_ms=group_setting("share.record.lock.duration.ms", own, broker),
            reset=group_setting("share.auto.offset.reset", own, broker),
            read_committed=group_setting("share.isolation.level", own, broker) == READ_COMMITTED,
        )
