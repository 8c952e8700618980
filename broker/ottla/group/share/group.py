"""A share group (KIP-932): its state and the sessions of its members. Pure.

`heartbeat` and `initialization` decide, and return entries to write. A share group has no committed offsets: its
position is in the states of its share-partitions, which the persister keeps.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import msgspec

from ottla.coordination.core.effects import Effects, Record, Reply, Write
from ottla.errors import Code, KafkaError
from ottla.group.classic.member import Left
from ottla.group.consumer.member import Member
from ottla.group.contract.records import record_type
from ottla.group.heartbeats.entries import Entry
from ottla.group.heartbeats.epochs import Seen
from ottla.group.heartbeats.group import HeartbeatGroup, Then, replay_entry
from ottla.group.heartbeats.targets import TargetInput, TargetResult
from ottla.group.share.advance import KINDS as RECORD_KINDS
from ottla.group.share.advance import compute, removal
from ottla.group.share.records import (
    KINDS,
    STATES,
    StatePartitions,
    decode,
    encode,
)
from ottla.group.share.state import ShareGroupState
from ottla.metadata.model.image import Image

__all__ = ["ShareGroup", "ShareRules", "ShareTerms"]


class ShareTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one group."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5000
    members_max: int = 200
    assignor: str = "simple"


class ShareRules(msgspec.Struct, frozen=True):
    """The rules of all share groups of a shard; `adopt` as in `ConsumerRules`."""

    image: Callable[[], Image]
    terms: Callable[[str], ShareTerms]
    adopt: Callable[[Any, Effects], None]


class ShareGroup(HeartbeatGroup[ShareGroupState]):
    type = "share"
    protocol_type = "share"
    kinds = RECORD_KINDS

    def __init__(self, group_id: str, rules: ShareRules) -> None:
        super().__init__(group_id, ShareGroupState(group_id), rules)
        self.rules = rules

    @property
    def terms(self) -> ShareTerms:
        return self.rules.terms(self.group_id)

    # -- as the shard sees it

    @property
    def may_expire(self) -> bool:
        """Never: its states would be lost. It is deleted by request only."""
        return False

    @property
    def offsets_may_expire(self) -> bool:
        return False

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.log.subscribed

    def own_tombstones(self) -> list[Entry]:
        return [Entry(STATES, (self.group_id,), None)]

    # -- members

    def remove(self, members: Sequence[Member], now: float, then: Then) -> Write:
        return self.removed(removal(self.log, members, image=self.rules.image()), now, then)

    # -- the log

    def encoded(self, entry: Entry) -> Record:
        return encode(entry)

    def to_examine(self) -> Seen:
        return Seen(self.rules.image(), self.log.states)

    def computation(self, standing: TargetInput) -> Callable[[], TargetResult]:
        return partial(compute, standing, self.log.states)

    def states_record(self, states: StatePartitions) -> Record:
        return encode(Entry(STATES, (self.group_id,), states))

    # -- what share groups do not have

    def check_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, version: int, transactional: bool = False
    ) -> None:
        self._refuse()

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        """A share group has no offsets. A request without a member gets an empty answer, not an error."""
        if member_id is not None or member_epoch >= 0:
            self._refuse()

    def check_offset_delete(self) -> None:
        self._refuse()

    def join(self, request: Any, to: Any, now: float) -> Effects:
        raise KafkaError(Code.inconsistent_group_protocol)

    def sync(self, request: Any, to: Any, now: float) -> Effects:
        raise KafkaError(Code.unknown_member_id)

    def heartbeat(self, *, member_id: str, instance_id: str | None, generation: int, now: float) -> Effects:
        raise KafkaError(Code.unknown_member_id)

    def leave(self, members: Sequence[Any], to: Any, now: float) -> Effects:
        return [Reply(to, Left(members=[(one, Code.unknown_member_id) for one in members]))]

    def _refuse(self) -> NoReturn:
        raise KafkaError(Code.group_id_not_found, f"Group {self.group_id} is not a consumer group.")


@record_type(*sorted(KINDS))
def replay_share_record(state: Any, key: memoryview, value: memoryview | None) -> None:
    entry = decode(bytes(key), None if value is None else bytes(value))
    replay_entry(state, entry, ShareGroup, state.new_share_group)
