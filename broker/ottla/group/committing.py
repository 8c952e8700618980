"""Commits offsets: checks whether the member may commit, appends the records, answers when they are committed."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ottla.errors import Code, KafkaError
from ottla.group.offsets.pending import Pending
from ottla.group.offsets.records import CommittedOffset
from ottla.group.shard import Shard
from ottla.storage.core.verification import Ticket
from ottla.wire.offset_commit import CommitRequest

__all__ = ["Commit", "Entries", "TransactionalCommit", "check_commit", "commit_in_transaction"]

GROUP_NOT_FOUND_SINCE = 9
Entries: TypeAlias = Sequence[tuple[str, int, CommittedOffset]]


class Commit:
    """One OffsetCommit. Appended together with others of its turn of the loop, then applied; answered when committed.

    `then` is called with the code for the partitions of `entries`.
    """

    __slots__ = ("_entries", "_group_id", "_shard", "_then")

    def __init__(self, shard: Shard, group_id: str, entries: Entries, then: Callable[[Code], None]) -> None:
        self._shard = shard
        self._group_id = group_id
        self._entries = entries
        self._then = then

    def appended(self, last_offset: int) -> None:
        shard = self._shard
        shard.replayed_offset = last_offset
        for topic, partition, committed in self._entries:
            shard.record_offset(self._group_id, topic, partition, committed)

    def ended(self, code: Code) -> None:
        self._then(code)


def check_commit(shard: Shard, request: CommitRequest, version: int) -> None:
    """KafkaError unless this member may commit. A commit without a member may create the group."""
    group = shard.groups.get(request.group_id)
    generation = request.generation_id_or_member_epoch
    if group is not None:
        group.check_commit(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=generation,
            version=version,
        )
        if request.member_id:
            group.committed(request.member_id, shard.clock.monotonic())
    elif generation >= 0:
        raise KafkaError(Code.group_id_not_found if version >= GROUP_NOT_FOUND_SINCE else Code.illegal_generation)


class TransactionalCommit(NamedTuple):
    """A TxnOffsetCommit. Producers from before KIP-447 do not name the member for which they commit."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    producer_id: int
    producer_epoch: int
    entries: Sequence[Pending]


async def commit_in_transaction(shard: Shard, commit: TransactionalCommit, version: int, ticket: Ticket | None) -> None:
    """`ticket`: the transaction was verified meanwhile, so this broker may have stopped leading."""
    if not shard.leads:
        raise KafkaError(Code.not_coordinator)
    _check_transactional(shard, commit, version)
    session = (commit.producer_id, commit.producer_epoch)
    await shard.until_committed(shard.commit_in_transaction(commit.group_id, session, commit.entries, ticket))


def _check_transactional(shard: Shard, commit: TransactionalCommit, version: int) -> None:
    group = shard.groups.get(commit.group_id)
    names_member = commit.generation >= 0 or commit.member_id or commit.instance_id is not None
    if group is None:
        if commit.generation >= 0:
            raise KafkaError(Code.illegal_generation)
    elif names_member:
        group.check_commit(
            member_id=commit.member_id,
            instance_id=commit.instance_id,
            generation=commit.generation,
            version=version,
            transactional=True,
        )
        group.committed(commit.member_id, shard.clock.monotonic())
