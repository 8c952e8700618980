"""The rows of the report: what was measured on both brokers, and what the goal says about it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

LIMITED_BY_CLIENT = "client"
SAME = 0.05  # two versions within this share of each other are called the same


@dataclass(frozen=True)
class Goal:
    """A bound on ottla/kafka, or on Ottla's own figure where the goal does not depend on Kafka's."""

    at_least: float | None = None
    at_most: float | None = None
    on_ratio: bool = True

    def margin(self, figure: float) -> float:
        """How far on the good side: 1 is just met, 2 twice as good as asked."""
        if self.at_least is not None:
            return figure / self.at_least
        assert self.at_most is not None
        return self.at_most / figure if figure > 0 else float("inf")

    def __str__(self) -> str:
        bound = f">= {self.at_least}" if self.at_least is not None else f"<= {self.at_most}"
        return bound if self.on_ratio else f"{bound} itself"


PRODUCE_RATE = Goal(at_least=1.2)
CONSUME_RATE = Goal(at_least=1.0)
CPU_PER_GB = Goal(at_most=0.6)
TAIL_LATENCY = Goal(at_most=0.7)
SECURED_RATE = Goal(at_least=1.5)
SECURED_CPU_PER_GB = Goal(at_most=0.6)
SECURED_TAIL_LATENCY = Goal(at_most=0.5)
MEMORY = Goal(at_most=0.15)
START = Goal(at_most=0.25)
FLEET_CPU_PER_GB = Goal(at_most=0.5)
FLEET_TAIL_LATENCY = Goal(at_most=0.5)
FAILOVER = Goal(at_most=0.3)
FAILOVER_EQUAL_SESSIONS = Goal(at_most=1.0)
JOIN_TIME = Goal(at_most=0.5)
COMMITS_HELD = Goal(at_least=9900, on_ratio=False)


@dataclass(frozen=True)
class Reading:
    """One figure of one run on one broker. `limited_by` says what ran out, with the proof ("client (… 97 % …)");
    `differs` what the two brokers do not have in common, where that moves the figure."""

    name: str
    unit: str
    value: float
    goal: Goal | None = None
    limited_by: str = ""
    differs: str = ""


@dataclass(frozen=True)
class Row:
    """`limits` says for each peer what limited the run nearest to its median."""

    name: str
    unit: str
    kafka: float
    ottla: float
    goal: Goal | None
    limits: Mapping[str, str]
    differs: str = ""

    @property
    def limited_by(self) -> str:
        """For whom, with the proofs; empty where it was not measured."""
        return "; ".join(f"{peer}: {limit}" for peer, limit in self.limits.items() if limit)

    @property
    def ratio(self) -> float:
        return self.ottla / self.kafka if self.kafka else 0.0

    @property
    def judged(self) -> bool:
        """There is a goal, and those ran whom it compares."""
        return self.goal is not None and self.ottla > 0 and (self.kafka > 0 or not self.goal.on_ratio)

    @property
    def margin(self) -> float:
        assert self.goal is not None
        return self.goal.margin(self.ratio if self.goal.on_ratio else self.ottla)

    @property
    def met(self) -> bool:
        return self.margin >= 1

    @property
    def excused(self) -> bool:
        """A client that can go faster with neither broker says nothing about them. One that waits for one of the two
        does."""
        both = [self.limits.get(peer, "") for peer in ("kafka", "ottla")]
        return all(limit.startswith(LIMITED_BY_CLIENT) for limit in both)

    @property
    def ok(self) -> bool:
        return not self.judged or self.excused or self.met

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "unit": self.unit,
            "kafka": round(self.kafka, 4),
            "ottla": round(self.ottla, 4),
            "ratio": round(self.ratio, 4),
            "goal": str(self.goal) if self.goal else None,
            "limited_by": {peer: limit for peer, limit in self.limits.items() if limit} or None,
            "differs": self.differs or None,
            "ok": self.ok,
        }


def make_rows(readings: dict[str, list[Reading]]) -> list[Row]:
    """Medians of all rounds, in the order in which the readings first came. `readings` is by peer."""
    by_name: dict[str, dict[str, list[Reading]]] = {}
    for peer, found in readings.items():
        for reading in found:
            by_name.setdefault(reading.name, {}).setdefault(peer, []).append(reading)
    return [_make_row(name, peers) for name, peers in by_name.items()]


def _make_row(name: str, peers: dict[str, list[Reading]]) -> Row:
    kafka, ottla = peers.get("kafka", []), peers.get("ottla", [])
    sample = (ottla or kafka)[0]
    return Row(
        name=name,
        unit=sample.unit,
        kafka=median(reading.value for reading in kafka) if kafka else 0.0,
        ottla=median(reading.value for reading in ottla) if ottla else 0.0,
        goal=sample.goal,
        limits={peer: _limit_of_median(found) for peer, found in peers.items()},
        differs=sample.differs,
    )


def _limit_of_median(readings: list[Reading]) -> str:
    """What limited the run nearest to the median, with its proof."""
    middle = median(reading.value for reading in readings)
    return min(readings, key=lambda reading: abs(reading.value - middle)).limited_by


def worst(rows: list[Row]) -> Row | None:
    """The row farthest on the bad side of its goal, among those where both brokers ran and no client was the limit.

    A goal without a ratio counts when it is missed: a load that was offered is held, never exceeded.
    """
    judged = [row for row in rows if row.judged and not row.excused]
    counted = [row for row in judged if row.goal and (row.goal.on_ratio or not row.met)]
    return min(counted, key=lambda row: row.margin, default=None)
