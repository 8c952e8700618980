"""The offsets topic. It is created when the first group looks for its coordinator."""

from ottla.coordination.internal_topic import InternalTopic

__all__ = ["OFFSETS_TOPIC", "OffsetsTopic"]

OFFSETS_TOPIC = "__consumer_offsets"


class OffsetsTopic(InternalTopic):
    name = OFFSETS_TOPIC
    partitions_setting = "offsets.topic.num.partitions"
    factor_setting = "offsets.topic.replication.factor"

    def _configs(self, factor: int) -> list[tuple[str, str]]:
        return [
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(self._settings.broker("offsets.topic.segment.bytes"))),
        ]
