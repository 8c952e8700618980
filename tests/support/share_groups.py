"""A shard without a log, for share groups, and members that follow their assignment."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ottla.coordination.core.effects import Record
from ottla.errors import KafkaError
from ottla.group.consumer.member import Partitions
from ottla.group.heartbeats.entries import Entry
from ottla.group.share.group import ShareGroup, ShareRules, ShareTerms
from ottla.group.share.heartbeat import ShareHeartbeat, ShareHeartbeatAnswer, check, group_for, heartbeat
from ottla.group.share.initialization import finish_initializing, start_initializing, uninitialized
from ottla.group.share.records import STATES, decode, encode
from ottla.group.share.state import ShareGroupState
from support.consumer_groups import GROUP, LittleShard

__all__ = ["ShareClient", "ShareShard"]


class ShareShard(LittleShard):
    def __init__(self, topics: Mapping[str, int], **terms: Any) -> None:
        super().__init__(topics)
        self.share_terms = ShareTerms(**terms)
        self.share_rules = ShareRules(
            image=lambda: self.image, terms=lambda group_id: self.share_terms, adopt=self._adopt
        )

    @property
    def share_group(self) -> ShareGroup:
        found = self.groups[GROUP]
        assert isinstance(found, ShareGroup)
        return found

    def share(self, **fields: Any) -> ShareHeartbeatAnswer:
        request = ShareHeartbeat(group_id=GROUP, **fields)
        check(request)
        group = group_for(request, self.groups.get(GROUP), self.share_rules)
        answer: ShareHeartbeatAnswer = self._asked(group, lambda to: heartbeat(group, request, to, self.now))
        return answer

    # as the keeper of states sees a shard

    leads = True

    def apply(self, records: Sequence[Record]) -> int:
        if self.lose is not None:
            code, self.lose = self.lose, None
            raise KafkaError(code)
        self.written += records
        for key, value in records:
            entry = decode(key, value)
            assert entry is not None
            self.share_group.log.apply(entry)
        return len(self.written) - 1

    async def until_committed(self, offset: int) -> None:
        """Everything is committed at once."""

    def delete_group(self, group: ShareGroup) -> int:
        self.written += group.tombstones()
        del self.groups[group.group_id]
        return len(self.written) - 1

    # states without a keeper

    def begin_states(self) -> Partitions:
        """As the keeper does when the persister has answered; which partitions."""
        log = self.share_group.log
        missing = uninitialized(log.states, log.subscribed, self.image)
        self.keep(finish_initializing(start_initializing(log.states, missing, self.image), missing))
        return missing

    def keep(self, states: Any) -> None:
        entry = Entry(STATES, (GROUP,), states)
        self.written.append(encode(entry))
        self.share_group.log.apply(entry)

    def reloaded_share(self) -> ShareGroupState:
        """The group as its records alone say."""
        state = ShareGroupState(GROUP)
        for key, value in self.written:
            entry = decode(key, value)
            assert entry is not None
            state.apply(entry)
        return state


class ShareClient:
    def __init__(self, shard: ShareShard, name: str, topics: Iterable[str]) -> None:
        self.shard, self.name, self.topics = shard, name, frozenset(topics)
        self.epoch = 0
        self.held: Partitions = frozenset()

    def beat(self, **facts: Any) -> ShareHeartbeatAnswer:
        if self.epoch == 0:
            facts = {"topics": self.topics} | facts
        answer = self.shard.share(member_id=self.name, member_epoch=self.epoch, **facts)
        self.epoch = answer.member_epoch
        if answer.assigned is not None:
            self.held = answer.assigned
        return answer

    def leave(self) -> None:
        self.shard.share(member_id=self.name, member_epoch=-1)
        self.epoch, self.held = 0, frozenset()
