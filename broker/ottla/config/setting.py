"""One setting: what the table declares about it. Pure."""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Literal

from ottla.config.rules import Rule

__all__ = [
    "DAY_MS",
    "DOUBLE_MAX",
    "GIB",
    "HOUR_MS",
    "INT_MAX",
    "KIB",
    "LONG_MAX",
    "MIB",
    "Effect",
    "Importance",
    "Mode",
    "Setting",
    "Type",
    "broker",
    "topic",
]

KIB, MIB, GIB = 1024, 1024**2, 1024**3
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308


class Type(IntEnum):
    """The numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


Effect = Literal["full", "none"]
"""`none`: the setting is accepted and described, but nothing in Ottla uses it. `make check` verifies it."""


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Mode(Enum):
    """Whether a setting can be changed at run time, and at which level."""

    READ_ONLY = "read-only"  # by the file and a restart
    PER_BROKER = "per-broker"  # at run time, for one broker
    CLUSTER_WIDE = "cluster-wide"  # at run time, for one broker or for all
    TOPIC = "topic"  # at run time, for one topic


UNITS = {
    ".ms": "ms", ".bytes": "bytes", ".seconds": "seconds", ".minutes": "minutes", ".hours": "hours",
    ".bytes.per.second": "bytes/s", ".throttled.rate": "bytes/s", "buffer.size": "bytes", ".threads": "threads",
    ".num.partitions": "partitions", ".replication.factor": "replicas", ".requests": "requests",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    name: str
    type: Type
    default: object  # as `parse` returns it; None is unset
    doc: str
    unit: str = ""
    importance: Importance
    mode: Mode
    valid: Rule | None = None
    synonyms: tuple[str, ...] = ()  # broker settings that give a topic's default; the first set one wins
    effect: Effect = "full"
    hidden: bool = False  # described only when it is set

    @property
    def sensitive(self) -> bool:
        return self.type is Type.PASSWORD

    @property
    def read_only(self) -> bool:
        return self.mode is Mode.READ_ONLY


def broker(
    name: str,
    kind: Type,
    default: object,
    importance: Importance,
    *,
    doc: str,
    mode: Mode = Mode.READ_ONLY,
    valid: Rule | None = None,
    unit: str | None = None,
    effect: Effect = "full",
    hidden: bool = False,
) -> Setting:
    """Declare a setting of a broker."""
    return Setting(name=name, type=kind, default=default, doc=doc, unit=_unit(name, unit), importance=importance,
                   mode=mode, valid=valid, effect=effect, hidden=hidden)  # fmt: skip


def topic(
    name: str,
    kind: Type,
    default: object,
    *,
    doc: str,
    synonyms: tuple[str, ...],
    valid: Rule | None = None,
    unit: str | None = None,
    effect: Effect = "full",
    hidden: bool = False,
) -> Setting:
    """Declare a setting of a topic; `synonyms` are the broker settings that give its default, the first set one
    wins."""
    return Setting(name=name, type=kind, default=default, doc=doc, unit=_unit(name, unit),
                   importance=Importance.MEDIUM, mode=Mode.TOPIC, valid=valid, synonyms=synonyms, effect=effect,
                   hidden=hidden)  # fmt: skip


def _unit(name: str, unit: str | None) -> str:
    if unit is not None:
        return unit
    return next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")
