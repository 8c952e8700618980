"""Durations in ISO-8601, as Java's Duration parses them: days to seconds. Pure."""

import re

__all__ = ["duration_ms"]

DURATION = re.compile(
    r"(-?)P(?=.)(?:(-?\d+)D)?(?:T(?=.)(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE | re.ASCII,
)
DAY_S, HOUR_S, MINUTE_S = 86_400, 3600, 60


def duration_ms(text: str) -> int:
    """`P7D`, `PT1H30M`. ValueError for anything else."""
    found = DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration, such as PT1H")
    sign, days, hours, minutes, seconds = found.groups()
    whole_s = int(days or 0) * DAY_S + int(hours or 0) * HOUR_S + int(minutes or 0) * MINUTE_S
    return (-1 if sign else 1) * (whole_s * 1000 + int(float((seconds or "0").replace(",", ".")) * 1000))
