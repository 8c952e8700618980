"""The settings of a log, typed, from its topic's configuration. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["LogSettings"]

DAY_MS = 24 * 60 * 60 * 1000
UNLIMITED = 2**63 - 1
APPEND_TIME = "LogAppendTime"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Defaults are Kafka 4.1's. Sizes in bytes; -1 in a retention means without limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    max_message_bytes: int = (1 << 20) + 12
    flush_messages: int = UNLIMITED
    flush_ms: int = UNLIMITED
    cleanup_policies: frozenset[str] = frozenset({"delete"})
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = UNLIMITED
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = 60_000
    timestamp_type: str = "CreateTime"
    timestamp_before_max_ms: int = UNLIMITED
    timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    preallocate: bool = False
    producer_expiry_ms: int = DAY_MS

    # Derived values that every append needs.
    append_time: bool = field(init=False)
    batch_bytes_max: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "append_time", self.timestamp_type == APPEND_TIME)
        object.__setattr__(self, "batch_bytes_max", min(self.max_message_bytes, self.segment_bytes))

    @classmethod
    def of(cls, values: Mapping[str, object]) -> "LogSettings":
        """From typed values under Kafka's names; a missing name keeps its default."""
        chosen: dict[str, Any] = {setting: values[name] for setting, name in KAFKA_NAMES.items() if name in values}
        if "cleanup_policies" in chosen:
            chosen["cleanup_policies"] = _policies(chosen["cleanup_policies"])
        return cls(**chosen)


def _policies(value: object) -> frozenset[str]:
    if isinstance(value, str):
        value = value.split(",")
    assert isinstance(value, list | tuple | set | frozenset), value
    return frozenset(name for name in map(str.strip, value) if name)


_RENAMED = {
    "cleanup_policies": "cleanup.policy",
    "timestamp_type": "message.timestamp.type",
    "timestamp_before_max_ms": "message.timestamp.before.max.ms",
    "timestamp_after_max_ms": "message.timestamp.after.max.ms",
    "producer_expiry_ms": "producer.id.expiration.ms",
}
KAFKA_NAMES = {
    each.name: _RENAMED.get(each.name, each.name.replace("_", ".")) for each in fields(LogSettings) if each.init
}
