"""The state topic. It is created when the first client looks for its coordinator."""

from ottla.coordination.internal_topic import InternalTopic

__all__ = ["STATE_TOPIC", "StateTopic"]

STATE_TOPIC = "__transaction_state"


class StateTopic(InternalTopic):
    name = STATE_TOPIC
    partitions_setting = "transaction.state.log.num.partitions"
    factor_setting = "transaction.state.log.replication.factor"

    def _configs(self, factor: int) -> list[tuple[str, str]]:
        return [
            ("cleanup.policy", "compact"),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", str(self._limited("transaction.state.log.min.isr", most=factor))),
            ("segment.bytes", str(self._settings.broker("transaction.state.log.segment.bytes"))),
            ("unclean.leader.election.enable", "false"),
        ]
