"""Groups that move between the protocols while in use: classic members in a consumer group, up and down."""

from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.group.classic.embedded_protocol import encode_assignment, read_assignment, read_subscription, version_of
from ottla.group.classic.group import ClassicGroup
from ottla.group.classic.member import Join, Joined, Leave, Left, Sync, Synced
from ottla.wire.reader import Malformed
from support.consumer_groups import GROUP, Client, LittleShard, topic_id

T = topic_id("t").bytes


def subscription(*topics: str, owned: tuple[int, ...] = ()) -> bytes:
    """Version 1, as consumers write it."""

    def text(value: str) -> bytes:
        return len(value).to_bytes(2) + value.encode()

    body = b"\0\1" + len(topics).to_bytes(4) + b"".join(map(text, topics)) + b"\xff\xff\xff\xff"
    held = b"".join(index.to_bytes(4) for index in owned)
    return body + ((1).to_bytes(4) + text("t") + len(owned).to_bytes(4) + held if owned else bytes(4))


class OldClient:
    """A consumer of the classic protocol with a cooperative assignor."""

    def __init__(self, shard: LittleShard, name: str = "", instance_id: str | None = None) -> None:
        self.shard, self.name, self.instance_id = shard, name, instance_id
        self.generation = -1
        self.owned: tuple[int, ...] = ()

    def join(self) -> Joined:
        request = Join(
            member_id=self.name,
            instance_id=self.instance_id,
            client_id="old",
            client_host="/h",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            protocol_type="consumer",
            protocols=(("cooperative-sticky", subscription("t", owned=self.owned)),),
        )
        answer: Joined = self.shard.ask(lambda group, to: group.join(request, to, self.shard.now))
        if answer is not None and answer.member_id:
            self.name = answer.member_id
        if answer is not None and answer.code is Code.none:
            self.generation = answer.generation
        return answer

    def sync(self, **fields: Any) -> Synced:
        request = Sync(self.name, self.instance_id, self.generation, "consumer", "cooperative-sticky", **fields)
        answer: Synced = self.shard.ask(lambda group, to: group.sync(request, to, self.shard.now))
        if answer is not None and answer.code is Code.none:
            self.owned = tuple(sorted(index for _, index in read_assignment(answer.assignment).partitions))
        return answer

    def heartbeat(self) -> Code:
        group = self.shard.groups[GROUP]
        try:
            group.heartbeat(
                member_id=self.name, instance_id=self.instance_id, generation=self.generation, now=self.shard.now
            )
        except KafkaError as error:
            return error.code
        return Code.none

    def follow(self) -> None:
        """What a consumer does between two polls."""
        if self.heartbeat() is Code.rebalance_in_progress:
            assert self.join().code is Code.none
            assert self.sync().code is Code.none


def classic_group(shard: LittleShard) -> OldClient:
    """One classic consumer that has all three partitions."""
    shard.groups[GROUP] = shard.new_classic_group(GROUP)
    old = OldClient(shard)
    assert old.join().code is Code.member_id_required
    old.join()
    shard.pass_time(0)
    old.generation = shard.groups[GROUP].generation
    old.sync(assignments=[(old.name, encode_assignment({"t": [0, 1, 2]}, version=1))])
    assert (old.owned, shard.groups[GROUP].state) == ((0, 1, 2), "Stable")
    return old


def moved_up(shard: LittleShard) -> tuple[OldClient, Client]:
    old = classic_group(shard)
    new = Client(shard, "new", ["t"])
    new.beat()
    assert shard.groups[GROUP].type == "consumer"
    for _ in range(6):
        old.follow()
        new.beat()
    return old, new


def test_a_newcomer_moves_the_group_up_and_both_share() -> None:
    shard = LittleShard({"t": 3})
    old, new = moved_up(shard)
    assert shard.group.state == "Stable"
    assert len(old.owned) in (1, 2)
    assert {*old.owned, *(index for _, index in new.owned)} == {0, 1, 2}
    assert len(old.owned) + len(new.owned) == 3
    group = shard.group
    group.check_commit(member_id=old.name, instance_id=None, generation=old.generation, version=5)
    with pytest.raises(KafkaError) as caught:
        group.check_commit(member_id=old.name, instance_id=None, generation=old.generation - 1, version=5)
    assert caught.value.code is Code.illegal_generation


@pytest.mark.parametrize("joins", [1, 2, 3])
def test_a_newcomer_may_come_while_the_first_classic_member_is_joining(joins: int) -> None:
    """When it was told its id, when it waits for others, and when it was told that it leads."""
    shard = LittleShard({"t": 3})
    shard.groups[GROUP] = shard.new_classic_group(GROUP)
    old = OldClient(shard)
    for _ in range(min(joins, 2)):
        old.join()
    if joins == 3:
        shard.pass_time(0)
        assert shard.groups[GROUP].state == "CompletingRebalance"
    new = Client(shard, "new", ["t"])
    new.beat()
    assert shard.groups[GROUP].type == "consumer"
    assert old.join().code is Code.none
    assert old.sync().code is Code.none
    for _ in range(6):
        old.follow()
        new.beat()
    assert sorted((*old.owned, *(index for _, index in new.owned))) == [0, 1, 2]
    assert old.owned and new.owned


def test_the_group_goes_back_when_the_last_new_member_leaves() -> None:
    shard = LittleShard({"t": 3})
    old, new = moved_up(shard)
    epoch = shard.group.log.epoch
    new.leave()
    back = shard.groups[GROUP]
    assert isinstance(back, ClassicGroup)
    assert (back.state, back.generation) == ("PreparingRebalance", epoch)
    assert old.heartbeat() is Code.rebalance_in_progress
    old.join()
    shard.pass_time(0)
    assert back.state == "CompletingRebalance"
    assert not shard.reloaded().members


def test_it_goes_back_as_well_when_the_last_new_member_dies() -> None:
    shard = LittleShard({"t": 3}, session_timeout_ms=5000)
    old, _ = moved_up(shard)
    shard.pass_time(4)
    old.follow()
    shard.pass_time(4)
    assert shard.groups[GROUP].type == "classic"
    assert list(shard.groups[GROUP].members) == [old.name]


@pytest.mark.parametrize("policy", ["DISABLED", "UPGRADE"])
def test_it_stays_where_going_back_is_not_allowed(policy: str) -> None:
    shard = LittleShard({"t": 3})
    old, new = moved_up(shard)
    shard.policy = policy
    new.leave()
    assert shard.groups[GROUP].type == "consumer"
    for _ in range(3):
        old.follow()
    assert old.owned == (0, 1, 2)


@pytest.mark.parametrize("policy", ["DISABLED", "DOWNGRADE"])
def test_it_does_not_move_up_where_that_is_not_allowed(policy: str) -> None:
    shard = LittleShard({"t": 3})
    old = classic_group(shard)
    shard.policy = policy
    with pytest.raises(KafkaError) as caught:
        Client(shard, "new", ["t"]).beat()
    assert caught.value.code is Code.group_id_not_found
    assert (shard.groups[GROUP].type, old.heartbeat()) == ("classic", Code.none)


def test_it_does_not_move_up_where_an_assignor_would_lose_its_own_data() -> None:
    """librdkafka's sticky assignor sends some along with the assignments."""
    shard = LittleShard({"t": 3})
    old = classic_group(shard)
    assignment = encode_assignment({"t": [0, 1, 2]}, version=1)
    assert assignment.endswith(b"\xff\xff\xff\xff")
    shard.groups[GROUP].members[old.name].assignment = assignment[:-4] + b"\0\0\0\1!"
    with pytest.raises(KafkaError, match="unsupported custom assignor") as caught:
        Client(shard, "new", ["t"]).beat()
    assert caught.value.code is Code.group_id_not_found
    assert (shard.groups[GROUP].type, old.heartbeat()) == ("classic", Code.none)


def test_a_static_member_moves_down_by_coming_back() -> None:
    shard = LittleShard({"t": 3})
    new = Client(shard, "new", ["t"], instance_id="i")
    new.beat()
    old = OldClient(shard, instance_id="i")
    answer = old.join()
    assert (answer.code, shard.groups[GROUP].type) == (Code.none, "classic")
    assert shard.groups[GROUP].state == "Stable"
    assert old.sync().code is Code.none
    assert old.owned == (0, 1, 2)


def test_an_empty_group_takes_the_other_kind_without_ado() -> None:
    shard = LittleShard({"t": 3})
    new = Client(shard, "new", ["t"])
    new.beat()
    new.leave()
    old = OldClient(shard)
    assert old.join().code is Code.member_id_required
    assert shard.groups[GROUP].type == "classic"
    old.join()
    shard.pass_time(0)
    old.generation = shard.groups[GROUP].generation
    shard.ask(lambda group, to: group.leave([Leave(old.name)], to, shard.now))
    assert shard.groups[GROUP].is_empty
    assert new.beat().assigned == frozenset((T, index) for index in range(3))


def test_classic_members_leave_and_are_timed() -> None:
    shard = LittleShard({"t": 3})
    old, new = moved_up(shard)
    answer = shard.ask(lambda group, to: group.leave([Leave(old.name), Leave("nobody")], to, shard.now))
    assert isinstance(answer, Left)
    assert [code for _, code in answer.members] == [Code.none, Code.unknown_member_id]
    assert list(shard.group.log.members) == ["new"]
    for _ in range(3):
        new.beat()
    assert len(new.owned) == 3


def test_a_classic_member_that_does_not_join_again_is_removed() -> None:
    shard = LittleShard({"t": 3}, session_timeout_ms=60_000)
    old = classic_group(shard)
    new = Client(shard, "new", ["t"])
    new.beat()
    for _ in range(5):
        shard.pass_time(5)
        old.heartbeat()
        new.beat()
    assert list(shard.groups[GROUP].log.members) == ["new"]


def test_other_protocols_are_refused() -> None:
    shard = LittleShard({"t": 3})
    Client(shard, "new", ["t"]).beat()
    old = OldClient(shard, "x")
    group = shard.group
    for protocol_type, protocols in (("connect", (("p", b""),)), ("consumer", (("range", b"\xff"),))):
        request = Join("x", None, "c", "/h", 10_000, 10_000, protocol_type, protocols)
        answer = shard.ask(lambda found, to, request=request: found.join(request, to, shard.now))
        assert answer.code is Code.inconsistent_group_protocol
    assert old.sync().code is Code.unknown_member_id
    assert list(group.log.members) == ["new"]


@pytest.mark.parametrize("data", [bytes(6), bytes(3), b"\0\1\0\0\0\1\0", b"\0\0\0\0\0\1\0\1\xff" + bytes(4)])
def test_what_is_cut_short_is_no_subscription(data: bytes) -> None:
    with pytest.raises(Malformed):
        read_subscription(data)
    with pytest.raises(Malformed):
        read_assignment(data)


def test_the_version_of_a_subscription_that_nobody_has_read() -> None:
    """Only the first of a member's protocols is read when it joins; the group may choose another one."""
    assert version_of(b"\0\2") == 2
    assert version_of(b"") == version_of(b"\xff\xff") == 0
