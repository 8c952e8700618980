"""TxnOffsetCommit: a group's offsets as part of a transaction; its marker puts them in force.

v2 leader epochs (KIP-320) · v3 flexible, member and generation (KIP-447) · v4 TRANSACTION_ABORTABLE · v5 the
transaction need not be announced before (KIP-890).
"""

from ottla.api.authorizing import TopicAccess, require, topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import MANY_BYTES_MAX, api
from ottla.api.requests import TxnOffsetCommitRequest
from ottla.errors import Code, KafkaError
from ottla.group.committing import TransactionalCommit, commit_in_transaction
from ottla.group.coordinator import GroupCoordinator
from ottla.group.offsets.pending import Pending
from ottla.group.offsets.records import CommittedOffset
from ottla.group.shard import Shard
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.ports import Clock
from ottla.replica.settings import LiveSettings
from ottla.security.core.access import Operation, Resource
from ottla.storage.core.verification import Ticket
from ottla.txn.verifying import Asked, Verifier

ADDS_SINCE, ABORTABLE_SINCE = 5, 4
# Clients know no others here: a stranger would end the producer, not the transaction.
ANSWERS = {
    Code.not_enough_replicas: Code.coordinator_load_in_progress,
    Code.stale_member_epoch: Code.illegal_generation,
}


@api(key=28, versions=(0, 5), bytes_max=MANY_BYTES_MAX)
async def txn_offset_commit(
    request: TxnOffsetCommitRequest,
    call: Call,
    groups: GroupCoordinator,
    feed: MetadataFeed,
    settings: LiveSettings,
    verifier: Verifier,
    clock: Clock,
) -> Answer:
    try:
        require(call, Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
        require(call, Operation.READ, Resource.GROUP, request.group_id)
    except KafkaError as error:
        return _reply(request, call, {}, error.code)
    readable = topic_access(call, Operation.READ)
    entries, own = _sorted_out(request, feed.image, settings, readable, now_ms=clock.wall_ms())
    code = Code.none
    if entries:
        try:
            shard = groups.shard_of(request.group_id)
            groups.kept.check(shard, request.group_id, entries, in_transaction=True)
            # The transaction first, then the member, as in Kafka: a stale member's request has begun its transaction by
            # then, or was refused because the one before has not ended. Otherwise the client would abort a transaction
            # that the coordinator does not know.
            ticket = await _verified(shard, request, call.version, verifier, now_ms=clock.wall_ms())
            await commit_in_transaction(shard, _commit(request, entries), call.version, ticket)
        except KafkaError as error:
            code = ANSWERS.get(error.code, error.code)
    return _reply(request, call, own, code)


def _reply(request: TxnOffsetCommitRequest, call: Call, own: dict[tuple[str, int], Code], code: Code) -> Answer:
    """Every partition that has no code of its own gets `code`."""
    return call.reply(
        topics=[
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": one.partition_index,
                        "error_code": own.get((topic.name, one.partition_index), code),
                    }
                    for one in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    )


def _sorted_out(
    request: TxnOffsetCommitRequest,
    image: Image,
    settings: LiveSettings,
    readable: TopicAccess | None,
    *,
    now_ms: int,
) -> tuple[list[Pending], dict[tuple[str, int], Code]]:
    """What can be committed, and what is wrong with the rest."""
    metadata_max = settings.broker("offset.metadata.max.bytes")
    entries: list[Pending] = []
    refused: dict[tuple[str, int], Code] = {}
    for topic in request.topics:
        denied = None if readable is None else readable.refused(topic.name)
        for one in topic.partitions:
            place, metadata = (topic.name, one.partition_index), one.committed_metadata or ""
            if denied is not None:
                refused[place] = denied.code
            elif image.partition(*place) is None:
                refused[place] = Code.unknown_topic_or_partition
            elif len(metadata) > metadata_max:
                refused[place] = Code.offset_metadata_too_large
            else:
                epoch = one.committed_leader_epoch
                entries.append((*place, CommittedOffset(one.committed_offset, epoch, metadata, now_ms)))
    return entries, refused


def _commit(request: TxnOffsetCommitRequest, entries: list[Pending]) -> TransactionalCommit:
    return TransactionalCommit(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        entries=entries,
    )


async def _verified(
    shard: Shard, request: TxnOffsetCommitRequest, version: int, verifier: Verifier, *, now_ms: int
) -> Ticket | None:
    """The coordinator's word that this partition of the offsets topic is in the transaction."""
    partition, adds = shard.partition, version >= ADDS_SINCE
    producers = partition.log.producers
    if producers.in_transaction(request.producer_id, request.producer_epoch):
        return None
    ticket = producers.verifications.begin(
        producer_id=request.producer_id,
        epoch=request.producer_epoch,
        sequence=-1,
        adds_partitions=adds,
        now_ms=now_ms,
    )
    asked = Asked(request.transactional_id, request.producer_id, request.producer_epoch, adds)
    await verifier.verify(asked, (partition.topic, partition.index), knows_abortable=version >= ABORTABLE_SINCE)
    return ticket
