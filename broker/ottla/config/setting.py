"""What a setting is: everything that the table declares about it. Pure."""

from dataclasses import dataclass
from enum import Enum, IntEnum

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


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Mode(Enum):
    """When a change takes hold, and for whom it can be made."""

    READ_ONLY = "read-only"  # server.properties and a restart
    PER_BROKER = "per-broker"  # while running, one broker at a time
    CLUSTER_WIDE = "cluster-wide"  # while running, for one broker or for all
    TOPIC = "topic"  # while running, for one topic


UNITS = {
    ".ms": "ms", ".bytes": "bytes", ".seconds": "seconds", ".minutes": "minutes", ".hours": "hours",
    ".bytes.per.second": "bytes/s", ".throttled.rate": "bytes/s", "buffer.size": "bytes", ".threads": "threads",
    ".num.partitions": "partitions", ".replication.factor": "replicas", ".requests": "requests",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    name: str
    type: Type
    default: object  # typed as `parse` gives it; None is unset
    doc: str
    unit: str = ""
    importance: Importance
    mode: Mode
    valid: Rule | None = None
    synonyms: tuple[str, ...] = ()  # of a topic: broker settings that give its default, the first set wins
    effect: str = "full"  # "none": accepted and reported, but nothing in Ottla uses it
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
    effect: str = "full",
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
    broker: tuple[str, ...],
    valid: Rule | None = None,
    unit: str | None = None,
    effect: str = "full",
    hidden: bool = False,
) -> Setting:
    """Declare a setting of a topic; `broker` names the settings that give its default."""
    return Setting(name=name, type=kind, default=default, doc=doc, unit=_unit(name, unit),
                   importance=Importance.MEDIUM, mode=Mode.TOPIC, valid=valid, synonyms=broker, effect=effect,
                   hidden=hidden)  # fmt: skip


def _unit(name: str, given: str | None) -> str:
    if given is not None:
        return given
    return next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")
