"""Loads the groups and offsets of a shard from its log."""

from functools import partial

from ottla.coordination.loading import Loading
from ottla.group.shard import Shard
from ottla.storage.core.producers import end_marker
from ottla.wire.batch import Batch

__all__ = ["GroupLoading"]


class GroupLoading(Loading):
    """Offsets of a transaction are pending until its marker."""

    def __init__(self, shard: Shard, *, read_bytes_max: int) -> None:
        super().__init__(shard, read_bytes_max=read_bytes_max)
        self._groups = shard

    def replay_batch(self, batch: Batch) -> None:
        if batch.is_control:
            if (marker := end_marker(batch)) is not None:
                self._groups.replay_marker(batch.producer_id, commit=marker.commit, offset=batch.base_offset)
        elif batch.is_transactional:
            self.replay_records(batch, partial(self._groups.replay_in_transaction, batch.producer_id))
        else:
            super().replay_batch(batch)
