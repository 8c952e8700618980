"""Clicks from a seed: the same seed and count give the same records, byte for byte.

The records come in two waves. The first holds clicks in order of arrival, some of them late but within the watermark,
and malformed records; it ends with a closing click half a day later, which moves the watermark past every session
before it. The second wave, fed when the first wave's sessions are out, adds clicks that are too late for any session,
and ordinary ones; it ends with a closing click, too.
"""

import heapq
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

__all__ = ["COMPLETE_AT", "GAP", "LATENESS", "PARTITIONS", "Click", "SampleRecord", "make_waves"]

PARTITIONS = 6
GAP = timedelta(minutes=30)
LATENESS = timedelta(minutes=10)

FIRST_WAVE_AT = datetime(2026, 1, 5, tzinfo=UTC)
FIRST_CLOSING_AT = FIRST_WAVE_AT + timedelta(days=1)
SECOND_WAVE_AT = FIRST_CLOSING_AT + timedelta(hours=1)
SECOND_CLOSING_AT = SECOND_WAVE_AT + timedelta(days=1)
# When the watermark has come here, every session but the last closing click's is out.
COMPLETE_AT = SECOND_WAVE_AT + timedelta(hours=22)
WAVE_SPAN_MAX = timedelta(hours=20)

CLICKS_PER_USER = 40
CLICKS_PER_BURST = (1, 15)
SECONDS_BETWEEN_CLICKS = (1.0, 240.0)
PAUSE_MINUTES = (31.0, 120.0)
LATE_SHARE, LATE_MINUTES = 0.05, (1.0, 8.0)
MALFORMED_SHARE, TOO_LATE_SHARE, SECOND_WAVE_SHARE = 0.01, 0.02, 0.1
EVENTS_MIN = 100
PAGES = ("/", "/pricing", "/docs", "/docs/start", "/docs/api", "/blog", "/login", "/account", "/cart", "/checkout")


@dataclass(frozen=True, slots=True, order=True)
class Click:
    time: datetime
    user: str
    page: str

    def to_json(self) -> bytes:
        fields = {"user": self.user, "page": self.page, "event_time": _text(self.time)}
        return json.dumps(fields, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord:
    """`counts`: it belongs to a session, because it is neither malformed nor too late."""

    partition: int
    key: bytes | None
    value: bytes | None
    click: Click | None
    counts: bool


def make_waves(*, seed: int, events: int) -> tuple[tuple[SampleRecord, ...], tuple[SampleRecord, ...]]:
    """`events` records altogether."""
    if events < EVENTS_MIN:
        raise ValueError(f"{events} events are too few for every kind of record: at least {EVENTS_MIN}")
    random = Random(seed)
    malformed, too_late = int(events * MALFORMED_SHARE), int(events * TOO_LATE_SHARE)
    second = int(events * SECOND_WAVE_SHARE)
    first_clicks = _clicks(random, count=events - malformed - too_late - second - 2, start=FIRST_WAVE_AT)
    first = [_good(click) for click in _as_they_arrive(random, first_clicks)]
    first = _mixed(random, first, [_bad(random) for _ in range(malformed)])
    first.append(_good(Click(FIRST_CLOSING_AT, "closing-1", "/")))
    late = [_good(_too_late(random, first_clicks), counts=False) for _ in range(too_late)]
    second_clicks = [_good(click) for click in _clicks(random, count=second, start=SECOND_WAVE_AT)]
    closing = _good(Click(SECOND_CLOSING_AT, "closing-2", "/"))
    return _spread(first), _spread([*_mixed(random, second_clicks, late), closing])


def _clicks(random: Random, *, count: int, start: datetime) -> list[Click]:
    """In order of time."""
    users = [f"user-{number}" for number in range(max(3, count // CLICKS_PER_USER))]
    clicks = list(itertools.islice(heapq.merge(*(_wander(random, user, start) for user in users)), count))
    assert clicks[-1].time - start < WAVE_SPAN_MAX, "the closing click would come too early"
    return clicks


def _wander(random: Random, user: str, start: datetime) -> Iterator[Click]:
    """One user's clicks, for ever: bursts with pauses longer than the gap between."""
    own = Random(random.getrandbits(64))  # heapq.merge pulls in an order of its own
    now = start + timedelta(minutes=own.uniform(0, PAUSE_MINUTES[1]))
    while True:
        for _ in range(own.randint(*CLICKS_PER_BURST)):
            yield Click(_whole_ms(now), user, own.choice(PAGES))
            now += timedelta(seconds=own.uniform(*SECONDS_BETWEEN_CLICKS))
        now += timedelta(minutes=own.uniform(*PAUSE_MINUTES))


def _as_they_arrive(random: Random, clicks: list[Click]) -> list[Click]:
    def arrival(click: Click) -> datetime:
        late = random.random() < LATE_SHARE
        return click.time + timedelta(minutes=random.uniform(*LATE_MINUTES) if late else 0)

    return [click for _, click in sorted((arrival(click), click) for click in clicks)]


def _too_late(random: Random, clicks: list[Click]) -> Click:
    """Beside a click of the first wave: it would change that session if it counted."""
    near = random.choice(clicks)
    return Click(near.time + timedelta(seconds=1), near.user, "/too-late")


def _bad(random: Random) -> SampleRecord:
    value: bytes | None = random.choice(
        (
            None,
            b"",
            b"not JSON at all",
            b'{"user": "user-1", "page": "/", "event_time": "2026-01-0',
            b'["a", "list"]',
            b"\xff\xfe\x00 no UTF-8",
            b'{"page": "/", "event_time": "2026-01-05T01:00:00.000Z"}',
            b'{"user": "user-1", "page": "/", "event_time": "yesterday"}',
            b'{"user": "user-1", "page": "/", "event_time": 1767574800}',
            b'{"user": "user-1", "page": "/", "event_time": "9999-12-31T00:00:00.000Z"}',
        )
    )
    return SampleRecord(partition=0, key=None, value=value, click=None, counts=False)


def _good(click: Click, *, counts: bool = True) -> SampleRecord:
    return SampleRecord(partition=0, key=click.user.encode(), value=click.to_json(), click=click, counts=counts)


def _mixed(random: Random, main: list[SampleRecord], others: list[SampleRecord]) -> list[SampleRecord]:
    """The others put at random places, the main ones in their order."""
    mixed = list(main)
    for other in others:
        mixed.insert(random.randint(0, len(mixed)), other)
    return mixed


def _spread(records: list[SampleRecord]) -> tuple[SampleRecord, ...]:
    """Round robin: readers of several partitions see nearly the same time in each."""
    return tuple(
        SampleRecord(partition=n % PARTITIONS, key=r.key, value=r.value, click=r.click, counts=r.counts)
        for n, r in enumerate(records)
    )


def _whole_ms(time: datetime) -> datetime:
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"
