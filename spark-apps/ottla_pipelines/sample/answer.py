"""The right answer for a sample, computed in plain Python from its definition. It knows nothing of Spark."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ottla_pipelines.sample.clicks import GAP, LATENESS, Click, SampleRecord

__all__ = ["Session", "closed_sessions", "differences", "sessions_of"]


@dataclass(frozen=True, slots=True, order=True)
class Session:
    """`end` is the last click's time and the gap."""

    user: str
    start: datetime
    end: datetime
    clicks: int
    pages: tuple[str, ...]


def closed_sessions(records: Iterable[SampleRecord]) -> set[Session]:
    """What a stream has put out when it has read all of these and nothing more comes."""
    clicks = [record.click for record in records if record.click is not None and record.counts]
    watermark = max(click.time for click in clicks) - LATENESS
    return {session for session in sessions_of(clicks) if session.end <= watermark}


def sessions_of(clicks: Iterable[Click]) -> list[Session]:
    by_user: dict[str, list[Click]] = defaultdict(list)
    for click in sorted(clicks):
        by_user[click.user].append(click)
    return [_session(run) for own in by_user.values() for run in _runs(own)]


def differences(expected: set[Session], seen: set[Session]) -> list[str]:
    """Nothing when the answer is exact."""
    missing = [f"missing: {session}" for session in sorted(expected - seen)]
    return missing + [f"unexpected: {session}" for session in sorted(seen - expected)]


def _runs(clicks: list[Click]) -> list[list[Click]]:
    """Split where nothing came for longer than the gap."""
    runs = [[clicks[0]]]
    for click in clicks[1:]:
        if click.time - runs[-1][-1].time > GAP:
            runs.append([])
        runs[-1].append(click)
    return runs


def _session(run: list[Click]) -> Session:
    pages = tuple(sorted({click.page for click in run}))
    return Session(run[0].user, run[0].time, run[-1].time + GAP, len(run), pages)
