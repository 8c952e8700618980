"""The vocabulary of the declarations: types, ranks, modes and sizes by their short names."""

from ottla.config.rules import (
    NonEmpty,
    NonEmptyList,
    RangeOr,
    ThrottledReplicas,
    at_least,
    between,
    one_of,
    some_of,
)
from ottla.config.setting import (
    DAY_MS,
    DOUBLE_MAX,
    GIB,
    HOUR_MS,
    INT_MAX,
    KIB,
    LONG_MAX,
    MIB,
    Importance,
    Mode,
    Setting,
    Type,
    broker,
    topic,
)

__all__ = [
    "BOOLEAN",
    "CLASS",
    "CLUSTER_WIDE",
    "DAY_MS",
    "DOUBLE",
    "DOUBLE_MAX",
    "GIB",
    "HIGH",
    "HOUR_MS",
    "INT",
    "INT_MAX",
    "KIB",
    "LIST",
    "LONG",
    "LONG_MAX",
    "LOW",
    "MEDIUM",
    "MIB",
    "PASSWORD",
    "PER_BROKER",
    "SHORT",
    "STRING",
    "NonEmpty",
    "NonEmptyList",
    "RangeOr",
    "Setting",
    "ThrottledReplicas",
    "at_least",
    "between",
    "broker",
    "one_of",
    "some_of",
    "topic",
]  # fmt: skip

BOOLEAN, STRING, INT, SHORT, LONG = Type.BOOLEAN, Type.STRING, Type.INT, Type.SHORT, Type.LONG
DOUBLE, LIST, CLASS, PASSWORD = Type.DOUBLE, Type.LIST, Type.CLASS, Type.PASSWORD
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
PER_BROKER, CLUSTER_WIDE = Mode.PER_BROKER, Mode.CLUSTER_WIDE
