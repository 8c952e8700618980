"""ListOffsets: the offset for a time, or for the earliest, latest and newest-timestamped record.

v2 isolation level · v4 leader epochs (KIP-320) · v6 flexible · v7 max timestamp (KIP-734) · v8 earliest local
(KIP-405) · v9 latest tiered (KIP-1005) · v10 timeout (KIP-1075).
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.partition_results import at_once
from ottla.api.registry import api
from ottla.errors import Code, KafkaError
from ottla.replica.partition import Partition
from ottla.storage.log import TimestampOffset

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
READ_COMMITTED = 1
CONSUMER = -1
UNKNOWN = TimestampOffset(offset=-1, timestamp=-1, leader_epoch=-1)


@api(key=2, versions=(1, 10), elements_max=None)
async def list_offsets(request: Any, call: Call) -> Answer:
    topics = await at_once(request.topics, lambda topic, part: _answer(topic, part, request, call), call)
    return call.reply(topics=topics)


async def _answer(topic: str, part: Any, request: Any, call: Call) -> dict[str, int]:
    try:
        partition = call.node.replicas.require(topic, part.partition_index)
        partition.require_leader(part.current_leader_epoch)
        found = await _lookup(partition, part.timestamp, request, call)
    except KafkaError as error:
        return {"partition_index": part.partition_index, "error_code": error.code, "timestamp": -1, "offset": -1}
    return {
        "partition_index": part.partition_index,
        "error_code": Code.none,
        "timestamp": found.timestamp,
        "offset": found.offset,
        "leader_epoch": found.leader_epoch,
    }


async def _lookup(partition: Partition, timestamp: int, request: Any, call: Call) -> TimestampOffset:
    log = partition.log
    end = _readable_end(partition, request)
    if timestamp == LATEST:
        _require_settled(partition, request)
        return TimestampOffset(end, -1, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimestampOffset(log.start_offset, -1, log.epochs.epoch_for_offset(log.start_offset))
    if timestamp == LATEST_TIERED:
        return UNKNOWN
    if timestamp < MAX_TIMESTAMP:
        raise KafkaError(Code.unsupported_version, f"{timestamp} is no timestamp this version knows")
    if timestamp == MAX_TIMESTAMP:
        found = await call.node.system.threads.run(log.max_timestamp)
    else:
        found = await call.node.system.threads.run(log.offset_for_timestamp, timestamp)
    if found is not None and found.offset < end:
        return found
    _require_settled(partition, request)
    return UNKNOWN


def _require_settled(partition: Partition, request: Any) -> None:
    """A new leader does not know yet what is committed: an end told now could go back (KIP-207)."""
    view = partition.view
    if request.replica_id == CONSUMER and view is not None and not view.is_settled:
        raise KafkaError(
            Code.offset_not_available,
            f"{partition}: the high watermark {view.high_watermark} has not reached the start of leader epoch "
            f"{partition.leader_epoch} at {view.epoch_start}",
        )


def _readable_end(partition: Partition, request: Any) -> int:
    if request.replica_id != CONSUMER:
        return partition.log.end_offset
    return partition.last_stable_offset if request.isolation_level == READ_COMMITTED else partition.high_watermark
