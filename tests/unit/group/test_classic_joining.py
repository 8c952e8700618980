"""Members come together: handshake, delay, protocols, limits, static members."""

from ottla.errors import Code
from ottla.group.classic.member import Leave
from support.classic_groups import Stage, refused, subscription


def test_a_new_member_is_given_an_id_first() -> None:
    stage = Stage(initial_delay_ms=0)
    given = stage.join("first")
    assert (given.code, given.member_id) == (Code.member_id_required, "c-1")
    assert not stage.group.members and stage.group.state == "Empty"
    stage.join("second", "c-1")
    stage.at(0.0)
    joined = stage.answers["second"]
    assert (joined.code, joined.generation, joined.leader, joined.protocol_name) == (Code.none, 1, "c-1", "range")
    assert joined.members == [("c-1", None, subscription("t"))]


def test_an_id_that_is_not_used_is_forgotten() -> None:
    stage = Stage()
    given = stage.join("first")
    stage.at(11.0)
    assert stage.join("late", given.member_id).code is Code.unknown_member_id


def test_older_clients_join_at_once() -> None:
    stage = Stage(initial_delay_ms=0)
    stage.join("join", needs_known_id=False)
    stage.at(0.0)
    assert stage.answers["join"].generation == 1


def test_the_first_rebalance_waits_for_more_members_as_long_as_they_come() -> None:
    stage = Stage(initial_delay_ms=3000)
    stage.admit("a")
    stage.at(2.9)
    stage.admit("b")
    stage.at(5.9)
    assert "a" not in stage.answers, "the second member put it off"
    stage.at(6.1)
    assert stage.answers["a"].generation == stage.answers["b"].generation == 1
    assert len(stage.answers["a"].members) == 2 and not stage.answers["b"].members


def test_the_first_rebalance_is_not_put_off_beyond_the_rebalance_timeout() -> None:
    stage = Stage(initial_delay_ms=3000)
    stage.admit("m0", rebalance_timeout_ms=10_000)
    for second in range(1, 10):
        stage.at(float(second))
        stage.admit(f"m{second}", rebalance_timeout_ms=10_000)
    stage.at(10.0)
    assert stage.answers["m0"].generation == 1


def test_the_protocol_most_members_prefer_wins_among_those_all_know() -> None:
    stage = Stage(initial_delay_ms=100)
    meta = subscription("t")
    stage.admit("a", protocols=(("only-a", meta), ("x", meta), ("y", meta)))
    stage.admit("b", protocols=(("y", meta), ("x", meta)))
    stage.admit("c", protocols=(("y", meta), ("x", meta)))
    stage.at(1.0)
    assert stage.answers["a"].protocol_name == "y"


def test_a_member_that_shares_no_protocol_is_refused() -> None:
    stage = Stage()
    stage.stable(1)
    assert stage.join("other", protocols=(("roundrobin", b""),)).code is Code.inconsistent_group_protocol
    assert stage.join("kind", protocol_type="connect").code is Code.inconsistent_group_protocol
    assert stage.join("none", protocols=()).code is Code.inconsistent_group_protocol
    assert stage.group.state == "Stable"


def test_a_full_group_takes_nobody() -> None:
    stage = Stage(members_max=2)
    ids = stage.stable(2)
    assert stage.join("third").code is Code.group_max_size_reached
    assert set(stage.group.members) == set(ids)


def test_a_follower_that_lost_its_answer_gets_it_again_and_nobody_else_is_disturbed() -> None:
    stage = Stage()
    _, follower = stage.stable(2)
    again = stage.join("again", follower)
    assert (again.code, again.generation, again.members) == (Code.none, 1, ())
    assert stage.group.state == "Stable"


def test_a_leader_that_joins_again_wants_a_rebalance() -> None:
    stage = Stage()
    leader, follower = stage.stable(2)
    stage.join("again", leader)
    assert stage.group.state == "PreparingRebalance"
    assert refused(lambda: stage.heartbeat(follower)) is Code.rebalance_in_progress
    stage.join("too", follower)
    assert stage.answers["again"].generation == stage.answers["too"].generation == 2


def test_whoever_does_not_come_back_in_time_is_left_behind() -> None:
    stage = Stage()
    leader, lazy = stage.stable(2, rebalance_timeout_ms=20_000, session_timeout_ms=100_000)
    stage.join("again", leader, rebalance_timeout_ms=20_000, session_timeout_ms=100_000)
    start = stage.now
    stage.at(start + 19.9)
    assert "again" not in stage.answers
    stage.at(start + 20.1)
    assert stage.answers["again"].generation == 2
    assert set(stage.group.members) == {leader}
    assert refused(lambda: stage.heartbeat(lazy)) is Code.unknown_member_id


def test_a_join_that_its_member_gave_up_is_answered() -> None:
    stage = Stage()
    leader, _ = stage.stable(2)
    stage.join("first try", leader)
    stage.join("second try", leader)
    assert stage.answers["first try"].code is Code.rebalance_in_progress
    assert "second try" not in stage.answers


# static members


def static_pair(stage: Stage) -> list[str]:
    for name in ("a", "b"):
        stage.join(name, instance_id=name)
    stage.at(10.0)
    ids = [stage.answers[name].member_id for name in ("a", "b")]
    leader = stage.group.leader
    for name, member_id in zip("ab", ids, strict=True):
        given = [(one, b"of " + one.encode()) for one in ids] if member_id == leader else ()
        stage.sync(f"sync-{name}", member_id, instance_id=name, assignments=given)
    assert stage.group.state == "Stable"
    return ids


def test_an_instance_that_comes_back_keeps_its_assignment_without_rebalance() -> None:
    stage = Stage()
    _, old = static_pair(stage)
    back = stage.join("back", instance_id="b")
    assert (back.code, back.generation) == (Code.none, 1) and back.member_id != old
    assert stage.group.state == "Stable"
    synced = stage.sync("sync-back", back.member_id, instance_id="b")
    assert synced.assignment == b"of " + old.encode()
    assert refused(lambda: stage.heartbeat(old, instance_id="b")) is Code.fenced_instance_id
    assert refused(lambda: stage.heartbeat(old)) is Code.unknown_member_id


def test_a_leader_that_comes_back_is_told_not_to_assign() -> None:
    stage = Stage()
    static_pair(stage)
    back = stage.join("new client", instance_id="a")
    assert back.skip_assignment and back.leader == back.member_id and len(back.members) == 2
    old_leader = back.member_id
    back = stage.join("old client", instance_id="a", may_skip_assignment=False)
    assert back.leader == old_leader and back.member_id != old_leader and not back.members


def test_the_place_is_not_taken_when_it_cannot_be_stored() -> None:
    stage = Stage(commit=True)
    _, old = static_pair(stage)
    stage.commit = False
    stage.join("back", instance_id="b")
    assert "back" not in stage.answers
    stage.written(Code.coordinator_not_available)
    assert stage.answers["back"].code is Code.coordinator_not_available
    stage.heartbeat(old, instance_id="b")


def test_an_instance_that_waits_is_fenced_by_its_successor() -> None:
    stage = Stage()
    stage.join("one", instance_id="same")
    stage.join("two", instance_id="same")
    assert stage.answers["one"].code is Code.fenced_instance_id
    stage.at(4.0)
    assert stage.answers["two"].generation == 1


def test_a_static_member_keeps_its_place_through_a_rebalance_it_missed() -> None:
    stage = Stage()
    ids = static_pair(stage)
    long = {"session_timeout_ms": 1_000_000}
    for name, member_id in zip("ab", ids, strict=True):
        stage.group.members[member_id].session_timeout_ms = 1_000_000
        stage.heartbeat(member_id, instance_id=name)
    stage.join("again", ids[0], instance_id="a", **long)
    stage.at(stage.now + 61.0)
    assert stage.answers["again"].generation == 2
    assert set(stage.group.members) == set(ids)


def test_an_administrator_removes_an_instance() -> None:
    stage = Stage()
    _, gone = static_pair(stage)
    left = stage.leave("admin", Leave("", "b"), Leave("", "nobody"), Leave("nobody"))
    assert [code for _, code in left.members] == [Code.none, Code.unknown_member_id, Code.unknown_member_id]
    assert gone not in stage.group.members and stage.group.state == "PreparingRebalance"
