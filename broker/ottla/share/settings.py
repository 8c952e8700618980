"""What a share group may set for itself, over the broker's own settings. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["BY_DURATION", "EARLIEST", "LATEST", "ShareSettings", "duration_ms"]

EARLIEST, LATEST, BY_DURATION = "earliest", "latest", "by_duration:"
READ_COMMITTED = "read_committed"

DURATION = re.compile(
    r"(-?)P(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d{1,9})?)S)?)?", re.IGNORECASE | re.ASCII
)
DAY_S, HOUR_S, MINUTE_S = 86_400, 3600, 60


class ShareSettings(NamedTuple):
    lock_ms: int
    reset: str
    """Where a group begins that has no offset yet: earliest, latest, or by_duration: and how long ago."""
    read_committed: bool

    @classmethod
    def of(cls, own: Mapping[str, str], broker: Callable[[str], Any]) -> "ShareSettings":
        lock_ms = own.get("share.record.lock.duration.ms")
        return cls(
            lock_ms=broker("group.share.record.lock.duration.ms") if lock_ms is None else int(lock_ms),
            reset=own.get("share.auto.offset.reset", LATEST).lower(),
            read_committed=own.get("share.isolation.level", "").lower() == READ_COMMITTED,
        )


def duration_ms(text: str) -> int:
    """ISO-8601 as Java reads it, days to seconds: `P7D`, `PT1H30M`. ValueError for anything else."""
    found = DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:]):
        raise ValueError(f"{text!r} is no duration, such as PT1H")
    sign, days, hours, minutes, seconds = found.groups()
    whole_s = int(days or 0) * DAY_S + int(hours or 0) * HOUR_S + int(minutes or 0) * MINUTE_S
    return (-1 if sign else 1) * (whole_s * 1000 + int(float(seconds or 0) * 1000))
