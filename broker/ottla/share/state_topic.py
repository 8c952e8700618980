"""The topic of share-partitions' states. It is created when the first client looks for its coordinator."""

from ottla.coordination.internal_topic import InternalTopic

__all__ = ["SHARE_STATE_TOPIC", "ShareStateTopic"]

SHARE_STATE_TOPIC = "__share_group_state"


class ShareStateTopic(InternalTopic):
    """No retention by age or size and no compaction: the coordinator deletes records that newer snapshots replace."""

    name = SHARE_STATE_TOPIC
    partitions_setting = "share.coordinator.state.topic.num.partitions"
    factor_setting = "share.coordinator.state.topic.replication.factor"

    def _configs(self, factor: int) -> list[tuple[str, str]]:
        return [
            ("cleanup.policy", "delete"),
            ("compression.type", "producer"),
            ("min.insync.replicas", str(self._limited("share.coordinator.state.topic.min.isr", most=factor))),
            ("retention.bytes", "-1"),  # Kafka uses the brokers' default here, and may lose states by it
            ("retention.ms", "-1"),
            ("segment.bytes", str(self._settings.broker("share.coordinator.state.topic.segment.bytes"))),
        ]
