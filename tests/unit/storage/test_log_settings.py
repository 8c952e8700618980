"""Typed settings of a log."""

from ottla.storage.core.settings import KAFKA_NAMES, LogSettings


def test_names_are_kafkas():
    assert KAFKA_NAMES["segment_bytes"] == "segment.bytes"
    assert KAFKA_NAMES["max_message_bytes"] == "max.message.bytes"
    assert KAFKA_NAMES["file_delete_delay_ms"] == "file.delete.delay.ms"
    assert KAFKA_NAMES["timestamp_after_max_ms"] == "message.timestamp.after.max.ms"
    assert KAFKA_NAMES["compression_gzip_level"] == "compression.gzip.level"


def test_missing_values_keep_their_defaults_and_unknown_ones_are_not_ours():
    settings = LogSettings.of({"segment.bytes": 5, "cleanup.policy": "compact, delete", "unclean.leader": True})
    assert (settings.segment_bytes, settings.retention_ms) == (5, 604_800_000)
    assert settings.cleanup_policies == {"compact", "delete"}
    assert LogSettings.of({"cleanup.policy": ["compact"]}).cleanup_policies == {"compact"}
    assert LogSettings.of({"message.timestamp.type": "LogAppendTime"}).append_time
