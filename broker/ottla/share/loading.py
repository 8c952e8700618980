"""Loads a share-partition: reads its state from the coordinator, or chooses its start offset."""

from ottla.config.durations import duration_ms
from ottla.errors import Code, KafkaError
from ottla.replica.partition import Partition
from ottla.share.core.messages import UNINITIALIZED, Persister, ShareKey, ShareState
from ottla.share.core.partition import SharePartition
from ottla.share.settings import BY_DURATION, EARLIEST
from ottla.system import System

__all__ = ["load"]


async def load(
    key: ShareKey,
    partition: Partition,
    *,
    persister: Persister,
    reset: str,
    system: System,
    records_max: int,
    deliveries_max: int,
) -> SharePartition:
    """KafkaError of the persister, and NOT_LEADER_OR_FOLLOWER when the leader changed meanwhile."""
    leader_epoch = partition.leader_epoch
    state = await persister.read(key, leader_epoch=leader_epoch)
    if state.start == UNINITIALIZED:
        start = await _beginning(partition, reset, system)
        # Written at once: otherwise another leader would start at the latest offset of a later time.
        await persister.write(key, state_epoch=state.state_epoch, leader_epoch=leader_epoch, start=start, batches=())
        state = ShareState(state.state_epoch, start)
    if not partition.is_leader or partition.leader_epoch != leader_epoch:
        raise KafkaError(Code.not_leader_or_follower, f"{partition} is led by broker {partition.leader_id}")
    return SharePartition(state, records_max=records_max, deliveries_max=deliveries_max)


async def _beginning(partition: Partition, reset: str, system: System) -> int:
    if reset == EARLIEST:
        return partition.log.start_offset
    if reset.startswith(BY_DURATION):
        since_ms = system.clock.wall_ms() - duration_ms(reset.removeprefix(BY_DURATION))
        found = await system.threads.run(partition.log.offset_for_timestamp, since_ms)
        if found is not None and found.offset < partition.high_watermark:
            return found.offset
    view = partition.view
    if view is not None and not view.is_settled:
        raise KafkaError(Code.coordinator_load_in_progress, f"{partition}: the new leader does not know its end yet")
    return partition.high_watermark
