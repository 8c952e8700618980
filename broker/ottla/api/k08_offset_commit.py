"""OffsetCommit: a group stores where it will go on reading.

v2-4 time of retention · v5 without it (KIP-211) · v6 leader epochs (KIP-320) · v7 static members (KIP-345) · v8
flexible · v9 member epochs of KIP-848.
"""

from collections.abc import Awaitable, Callable

from ottla.api.authorizing import TopicAccess, may, topic_access
from ottla.api.call import Answer, Call, Deferred
from ottla.api.registry import MANY_ELEMENTS_MAX, MOST_BYTES_MAX, api
from ottla.api.requests import OffsetCommitRequest, OffsetCommitRequestPartition
from ottla.api.slices import paced
from ottla.coordination.core.records import Record
from ottla.errors import Code, KafkaError
from ottla.group.coordinator import GroupCoordinator
from ottla.group.offsets.records import INT32, NO_EXPIRY, CommittedOffset, offset_key_head, offset_value
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.ports import Clock
from ottla.replica.settings import LiveSettings
from ottla.security.core.access import Operation, Resource
from ottla.wire.offset_commit import CommitRequest, PartitionCommit, encode, flexible_reader
from ottla.wire.text_limits import is_too_long

NONE, UNKNOWN, TOO_LARGE = (
    int(Code.none),
    int(Code.unknown_topic_or_partition),
    int(Code.offset_metadata_too_large),
)
INT64_MAX = 2**63 - 1
Results = list[tuple[str, list[tuple[int, int]]]]


@api(
    key=8,
    versions=(2, 9),
    readers={8: flexible_reader, 9: flexible_reader},
    pipelined=True,
    elements_max=MANY_ELEMENTS_MAX,
    bytes_max=MOST_BYTES_MAX,
)
def offset_commit(
    request: OffsetCommitRequest,
    call: Call,
    groups: GroupCoordinator,
    feed: MetadataFeed,
    settings: LiveSettings,
    clock: Clock,
) -> Answer | Deferred | Awaitable[Answer | Deferred]:
    asked = request if isinstance(request, CommitRequest) else _plain(request)
    if is_too_long(asked.group_id):
        return _reply(call, _all_fine(asked), Code.invalid_group_id)
    if not may(call, Operation.READ, Resource.GROUP, asked.group_id):
        return _reply(call, _all_fine(asked), Code.group_authorization_failed)
    readable = topic_access(call, Operation.READ)

    def commit() -> Answer | Deferred:
        entries, records, results = _sorted_out(asked, feed.image, settings, readable, now_ms=clock.wall_ms())
        if not entries:
            return _reply(call, results, Code.none)
        waiting = CommitAnswer(call, results)
        try:
            groups.commit(asked, call.version, entries, records, waiting.settle)
        except KafkaError as error:
            return _reply(call, results, error.code)
        return waiting

    if readable is not None and call.is_large:
        return _once_decided(asked, readable, call, commit)
    return commit()


async def _once_decided(
    asked: CommitRequest, readable: TopicAccess, call: Call, commit: Callable[[], Answer | Deferred]
) -> Answer | Deferred:
    """Whether the client may read so many topics is decided in slices; the rest of a commit is done in one go."""
    async for name, _ in paced(asked.topics, call):
        readable.refused(name)
    return commit()


class CommitAnswer(Deferred):
    __slots__ = ("_call", "_code", "_results")

    def __init__(self, call: Call, results: Results) -> None:
        super().__init__()
        self._call = call
        self._results = results
        self._code = Code.none

    def settle(self, code: Code) -> None:
        self._code = code
        self.finish()

    def make(self) -> Answer:
        return _reply(self._call, self._results, self._code)


def _plain(request: OffsetCommitRequest) -> CommitRequest:
    """A request of an older version in the shape of the hand-made reader."""
    return CommitRequest(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        [(topic.name, [_partition(one) for one in topic.partitions]) for topic in request.topics],
        getattr(request, "retention_time", -1),
    )


def _partition(one: OffsetCommitRequestPartition) -> PartitionCommit:
    return one.partition_index, one.committed_offset, one.committed_leader_epoch, one.committed_metadata


def _all_fine(request: CommitRequest) -> Results:
    return [(name, [(one[0], NONE) for one in partitions]) for name, partitions in request.topics]


def _sorted_out(
    request: CommitRequest, image: Image, settings: LiveSettings, readable: TopicAccess | None, *, now_ms: int
) -> tuple[list[tuple[str, int, CommittedOffset]], list[Record], Results]:
    """What can be committed, its records, and the code of every partition if all goes well."""
    topics = image.topics
    expires_ms = NO_EXPIRY if request.retention_time < 0 else min(now_ms + request.retention_time, INT64_MAX)
    entries: list[tuple[str, int, CommittedOffset]] = []
    records: list[Record] = []
    results: Results = []
    for name, partitions in request.topics:
        if readable is not None and (error := readable.refused(name)) is not None:
            results.append((name, [(one[0], int(error.code)) for one in partitions]))
            continue
        known = topics.get(name)
        count = 0 if known is None else len(known.partitions)
        head = offset_key_head(request.group_id, name) if count else b""
        lines: list[tuple[int, int]] = []
        for index, offset, leader_epoch, metadata in partitions:
            if not 0 <= index < count:
                lines.append((index, UNKNOWN))
            elif metadata and len(metadata) > settings.broker("offset.metadata.max.bytes"):
                lines.append((index, TOO_LARGE))
            else:
                committed = CommittedOffset(offset, leader_epoch, metadata or "", now_ms, expires_ms)
                entries.append((name, index, committed))
                records.append((head + INT32(index), offset_value(committed)))
                lines.append((index, NONE))
        results.append((name, lines))
    return entries, records, results


def _reply(call: Call, results: Results, code: Code) -> Answer:
    """Every partition that has no code of its own gets `code`."""
    if code is not Code.none:
        results = [(name, [(index, own or int(code)) for index, own in lines]) for name, lines in results]
    return call.frame(encode(call.version, results))
