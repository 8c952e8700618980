"""Memory, files and threads of brokers over time: how they are taken, what grows, and how they are shown."""

import csv
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import psutil
from support.process import BrokerProcess

MEASURES = ("rss_mb", "files", "threads")
BARS = "▁▂▃▄▅▆▇█"
PLOT_COLUMNS = 60


@dataclass(frozen=True)
class Sample:
    """Of one broker with its worker processes."""

    minute: float
    broker: int
    rss_mb: float
    files: int
    threads: int


def sample(minute: float, number: int, broker: BrokerProcess) -> Sample:
    rss = files = threads = 0
    for pid in broker.pids():
        process = psutil.Process(pid)
        with process.oneshot():
            rss, threads = rss + process.memory_info().rss, threads + process.num_threads()
        files += process.num_fds()
    return Sample(round(minute, 3), number, round(rss / 1e6, 2), files, threads)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Least squares: how much the second grows per unit of the first. Pure; 0 for fewer than two points."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def slopes(samples: Sequence[Sample], broker: int, *, from_minute: float) -> dict[str, float]:
    """Growth per minute of each measure after `from_minute`."""
    mine = [each for each in samples if each.broker == broker and each.minute >= from_minute]
    return {what: slope([(each.minute, getattr(each, what)) for each in mine]) for what in MEASURES}


def table(samples: Sequence[Sample], *, every_minutes: float) -> str:
    """One line each few minutes, the last sample included; RSS in MB, files, threads of each broker."""
    brokers = sorted({each.broker for each in samples})
    by_time: dict[float, list[Sample]] = {}
    for each in samples:
        by_time.setdefault(each.minute, []).append(each)
    lines = ["minute  " + "".join(f"broker {broker}: MB files threads  " for broker in brokers)]
    next_minute = 0.0
    for minute in sorted(by_time):
        if minute >= next_minute or minute == max(by_time):
            next_minute = minute + every_minutes
            cells = (f"{one.rss_mb:12.1f} {one.files:5} {one.threads:7}  " for one in by_time[minute])
            lines.append(f"{minute:6.1f}  " + "".join(cells))
    return "\n".join(lines)


def plot(samples: Sequence[Sample], what: str, broker: int) -> str:
    """A row of bars from the smallest to the largest value."""
    values = [float(getattr(each, what)) for each in samples if each.broker == broker]
    width = -(-len(values) // PLOT_COLUMNS)
    means = [sum(part) / len(part) for at in range(0, len(values), width) if (part := values[at : at + width])]
    low, high = min(means), max(means)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return f"{what:<8} {low:7.1f} {''.join(BARS[round((one - low) * scale)] for one in means)} {high:.1f}"


def write_csv(samples: Sequence[Sample], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(Sample)])
        writer.writerows(astuple(each) for each in samples)
