"""Assignments, sessions, leaving, commits, and what the log keeps."""

from ottla.errors import Code
from ottla.group.classic.group import ClassicGroup, Rules
from ottla.group.classic.member import Leave
from ottla.group.contract.records import replay
from support.classic_groups import Stage, refused, subscription


def test_followers_wait_for_the_leader_and_all_wait_for_the_log() -> None:
    stage = Stage(initial_delay_ms=0, commit=False)
    leader = stage.admit("a")
    stage.at(0.1)
    stage.join("b-first")
    follower = stage.answers["b-first"].member_id
    stage.join("b", follower)
    stage.join("a-again", leader)
    assert stage.answers["b"].generation == 2
    stage.sync("follower", follower)
    assert "follower" not in stage.answers
    stage.sync("leader", leader, assignments=[(follower, b"all")])
    assert "leader" not in stage.answers, "it is not committed yet"
    stage.written()
    assert (stage.answers["follower"].assignment, stage.answers["leader"].assignment) == (b"all", b"")
    assert stage.group.state == "Stable"


def test_an_assignment_that_cannot_be_stored_begins_anew() -> None:
    stage = Stage(initial_delay_ms=0, commit=False)
    leader = stage.admit("a")
    stage.at(0.1)
    stage.sync("sync", leader, assignments=[(leader, b"all")])
    stage.written(Code.coordinator_not_available)
    assert stage.answers["sync"].code is Code.coordinator_not_available
    assert stage.group.state == "PreparingRebalance"


def test_a_rebalance_in_between_makes_a_stored_assignment_void() -> None:
    stage = Stage(initial_delay_ms=0, commit=False)
    leader = stage.admit("a")
    stage.at(0.1)
    stage.sync("sync", leader, assignments=[(leader, b"all")])
    stage.admit("b")
    assert stage.answers["sync"].code is Code.rebalance_in_progress
    stage.written()
    assert stage.group.state == "PreparingRebalance" and not stage.group.members[leader].assignment


def test_syncs_of_the_wrong_generation_member_or_protocol_are_refused() -> None:
    stage = Stage()
    (member,) = stage.stable(1)
    assert stage.sync("old", member, generation=0).code is Code.illegal_generation
    assert stage.sync("who", "nobody").code is Code.unknown_member_id
    assert stage.sync("how", member, protocol_name="roundrobin").code is Code.inconsistent_group_protocol
    assert stage.sync("again", member).assignment == b"of " + member.encode()


def test_members_that_never_ask_for_their_share_are_removed() -> None:
    stage = Stage(initial_delay_ms=0)
    short = {"rebalance_timeout_ms": 5_000, "session_timeout_ms": 100_000}
    stage.admit("a", **short)
    stage.at(4.0)
    assert stage.group.state == "CompletingRebalance"
    stage.at(6.0)
    assert not stage.group.members and stage.group.state == "Empty"


def test_a_silent_member_is_removed_and_others_go_on() -> None:
    stage = Stage()
    silent, alive = stage.stable(2)
    begin = stage.now
    for second in range(1, 10):
        stage.at(begin + second)
        stage.heartbeat(alive)
    stage.at(begin + 11)
    assert set(stage.group.members) == {alive}
    assert refused(lambda: stage.heartbeat(silent)) is Code.unknown_member_id
    assert refused(lambda: stage.heartbeat(alive)) is Code.rebalance_in_progress


def test_whoever_waits_for_an_answer_does_not_lose_its_session() -> None:
    stage = Stage()
    leader, other = stage.stable(2, rebalance_timeout_ms=50_000, session_timeout_ms=10_000)
    stage.heartbeat(other)
    stage.join("again", leader, rebalance_timeout_ms=50_000)
    for _ in range(4):
        stage.at(stage.now + 9)
        assert refused(lambda: stage.heartbeat(other)) is Code.rebalance_in_progress
    stage.join("too", other)
    assert stage.answers["again"].code is Code.none


def test_the_last_member_leaves_an_empty_group_behind() -> None:
    stage = Stage()
    first, second = stage.stable(2)
    written = len(stage.records)
    left = stage.leave("bye", Leave(first), Leave(second), Leave("stranger"))
    assert [code for _, code in left.members] == [Code.none, Code.none, Code.unknown_member_id]
    assert (stage.group.state, stage.group.generation) == ("Empty", 2)
    assert len(stage.records) == written + 1
    assert stage.group.empty_since_ms == stage.group.rules.wall_ms()


def test_a_member_that_leaves_while_it_waits_is_told() -> None:
    stage = Stage(initial_delay_ms=3000)
    member = stage.admit("join")
    stage.leave("bye", Leave(member))
    assert stage.answers["join"].code is Code.unknown_member_id
    stage.at(100.0)
    assert stage.group.state == "Empty"


def commit(stage: Stage, member_id: str = "", generation: int = -1, instance_id: str | None = None) -> Code:
    return refused(
        lambda: stage.group.check_commit(member_id=member_id, instance_id=instance_id, generation=generation, version=9)
    )


def test_who_may_commit() -> None:
    stage = Stage()
    assert commit(stage) is Code.none, "nobody is in the group"
    (member,) = stage.stable(1)
    assert commit(stage, member, 1) is Code.none
    assert commit(stage, member, 0) is Code.illegal_generation
    assert commit(stage, "stranger", 1) is Code.unknown_member_id
    assert commit(stage) is Code.unknown_member_id, "members own the offsets now"
    stage.join("again", member)
    assert stage.group.state == "CompletingRebalance"
    assert commit(stage, member, 2) is Code.rebalance_in_progress
    told = {"member_id": member, "instance_id": None, "version": 5, "transactional": True}
    assert refused(lambda: stage.group.check_commit(generation=2, **told)) is Code.none, "as Kafka has it"
    assert refused(lambda: stage.group.check_commit(generation=1, **told)) is Code.illegal_generation


def test_topics_that_members_consume_are_known() -> None:
    stage = Stage()
    stage.stable(1, protocols=(("range", subscription("a", "b")),))
    assert stage.group.is_subscribed("a") and not stage.group.is_subscribed("c")
    strange = Stage()
    strange.stable(1, protocols=(("range", b"\0"),))
    assert strange.group.is_subscribed("anything"), "better keep too much than too little"


class Restored:
    """What loading needs of a shard."""

    def __init__(self) -> None:
        self.groups: dict[str, ClassicGroup] = {}

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, Rules(new_id=str, wall_ms=lambda: 0))

    def put_group(self, group: ClassicGroup) -> None:
        self.groups[group.group_id] = group

    def remove_group(self, group_id: str, kind: str) -> None:
        del self.groups[group_id]


def test_a_group_comes_back_from_the_log() -> None:
    stage = Stage()
    ids = stage.stable(2)
    shard = Restored()
    for key, value in stage.records:
        replay(shard, memoryview(key), None if value is None else memoryview(value))
    group = shard.groups["g"]
    assert (group.state, group.generation, group.leader) == ("Stable", 1, stage.group.leader)
    assert {m.member_id: m.assignment for m in group.members.values()} == {i: b"of " + i.encode() for i in ids}
    group.loaded(100.0)
    group.heartbeat(member_id=ids[0], instance_id=None, generation=1, now=105.0)
    group.tick(111.0)
    assert set(group.members) == {ids[0]}, "sessions began when the log was loaded"
    for key, value in stage.group.tombstones():
        replay(shard, memoryview(key), value)
    assert not shard.groups


def test_everybody_who_waits_learns_that_the_coordinator_moved() -> None:
    stage = Stage(initial_delay_ms=3000)
    stage.admit("join")
    stage.perform(stage.group.unload())
    assert stage.answers["join"].code is Code.not_coordinator
