"""The requests of the two flows of transactions, and what their codes mean to a client."""

from ottla.errors import Code

__all__ = ["AGAIN", "DONE", "FENCED", "Flow"]

AGAIN = frozenset(
    {
        Code.coordinator_load_in_progress,
        Code.coordinator_not_available,
        Code.not_coordinator,
        Code.concurrent_transactions,
        Code.not_leader_or_follower,
        Code.not_enough_replicas,
        Code.not_enough_replicas_after_append,
        Code.request_timed_out,
        Code.unknown_topic_or_partition,
        Code.unknown_topic_id,
        Code.kafka_storage_error,
        Code.unstable_offset_commit,
        Code.network_exception,
        Code.operation_not_attempted,
    }
)
DONE = frozenset({Code.none, Code.duplicate_sequence_number})
FENCED = frozenset({Code.invalid_producer_epoch, Code.producer_fenced, Code.invalid_producer_id_mapping})


class Flow:
    """Versions of the requests: with an epoch for each transaction, or with one for all."""

    def __init__(self, *, epochs: bool) -> None:
        self.epochs = epochs
        self.init, self.add_partitions, self.add_offsets = (22, 5 if epochs else 4), (24, 3), (25, 3)
        self.produce = (0, 12 if epochs else 10)
        self.commit_offsets = (28, 5 if epochs else 3)
        self.end = (26, 5 if epochs else 3)
