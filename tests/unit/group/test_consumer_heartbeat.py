"""KIP-848 groups: epochs, reconciliation, fencing, static members, timers; and a random walk over all of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.coordination.core.effects import Write
from ottla.errors import Code, KafkaError
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.heartbeat import Heartbeat, heartbeat
from ottla.group.consumer.member import MemberState
from support.consumer_groups import GROUP, Answer, Client, LittleShard, topic_id

T = topic_id("t").bytes


def parts(*indexes: int, of: bytes = T) -> frozenset[tuple[bytes, int]]:
    return frozenset((of, index) for index in indexes)


def refusal(call: object) -> Code:
    with pytest.raises(KafkaError) as caught:
        call()  # type: ignore[operator]
    return caught.value.code


def settle(shard: LittleShard, *clients: Client) -> None:
    """Heartbeats until everybody has what it shall have."""
    for _ in range(10):
        for client in clients:
            client.beat()
        if shard.group.state == "Stable":
            return
    raise AssertionError(f"still {shard.group.state}")


# -- joining and moving


def test_the_first_member_gets_everything_with_its_first_answer() -> None:
    shard = LittleShard({"t": 3})
    answer = Client(shard, "a", ["t"]).beat()
    assert (answer.member_epoch, answer.heartbeat_interval_ms, answer.assigned) == (1, 500, parts(0, 1, 2))
    assert shard.group.state == "Stable"


def test_a_partition_is_given_up_before_another_gets_it() -> None:
    shard = LittleShard({"t": 2})
    a, b = Client(shard, "a", ["t"]), Client(shard, "b", ["t"])
    a.beat()
    assert b.beat().assigned == frozenset()
    assert (b.epoch, shard.group.log.members["b"].position.state) == (2, MemberState.UNRELEASED_PARTITIONS)
    told = a.beat()
    assert (told.member_epoch, told.assigned) == (1, parts(0))
    assert b.beat().assigned is None  # a has not said yet that it gave it up
    assert a.beat().member_epoch == 2
    assert b.beat().assigned == parts(1)
    assert shard.group.state == "Stable"


def test_a_heartbeat_without_news_writes_nothing() -> None:
    shard = LittleShard({"t": 2})
    a = Client(shard, "a", ["t"])
    a.beat()
    a.beat()
    written = len(shard.written)
    assert shard.heartbeat(member_id="a", member_epoch=1).assigned is None
    assert len(shard.written) == written


def test_a_member_is_alive_when_it_is_heard_however_long_its_write_takes() -> None:
    shard = LittleShard({"t": 2}, session_timeout_ms=5000)
    a, b = Client(shard, "a", ["t"]), Client(shard, "b", ["t"])
    a.beat()
    b.beat()
    shard.now += 3
    request = Heartbeat(group_id=GROUP, version=1, member_id="a", member_epoch=a.epoch, owned=a.owned)
    effects = heartbeat(shard.group, request, Answer(), shard.now)
    assert any(isinstance(effect, Write) for effect in effects), "and it never ends"
    shard.pass_time(3)
    assert "a" in shard.group.log.members


def test_heartbeats_are_quick_only_while_the_group_moves() -> None:
    shard = LittleShard({"t": 2}, heartbeat_interval_ms=7000)
    a = Client(shard, "a", ["t"])
    a.beat()
    assert a.beat().heartbeat_interval_ms == 500
    shard.pass_time(6)
    assert a.beat().heartbeat_interval_ms == 7000
    Client(shard, "b", ["t"]).beat()
    assert a.beat().heartbeat_interval_ms == 500


def test_a_full_request_is_answered_in_full() -> None:
    shard = LittleShard({"t": 1})
    Client(shard, "a", ["t"]).beat()
    answer = shard.heartbeat(
        member_id="a", member_epoch=1, rebalance_timeout_ms=10_000, topics=frozenset({"t"}), owned=parts(0)
    )
    assert answer.assigned == parts(0)


def test_an_answer_that_got_lost_is_given_again() -> None:
    shard = LittleShard({"t": 1})
    Client(shard, "a", ["t"]).beat()
    shard.set_topics({"t": 2})
    assert shard.heartbeat(member_id="a", member_epoch=1, owned=parts(0)).member_epoch == 2
    assert shard.heartbeat(member_id="a", member_epoch=1, owned=parts(0)).member_epoch == 2


def test_an_assignment_is_repeated_until_it_is_acknowledged_but_not_for_ever() -> None:
    """librdkafka 2.16 sends no full request when an answer is lost by a time-out."""
    shard = LittleShard({"t": 2})
    Client(shard, "a", ["t"]).beat()
    written = len(shard.written)
    repeated = [shard.heartbeat(member_id="a", member_epoch=1).assigned for _ in range(5)]
    assert repeated == [parts(0, 1)] * 3 + [None, None]
    assert len(shard.written) == written
    shard.set_topics({"t": 3})
    assert shard.heartbeat(member_id="a", member_epoch=1).assigned == parts(0, 1, 2)
    assert shard.heartbeat(member_id="a", member_epoch=2).assigned == parts(0, 1, 2), "the answer before was lost"
    assert shard.heartbeat(member_id="a", member_epoch=2, owned=parts(0, 1, 2)).assigned is None
    assert shard.heartbeat(member_id="a", member_epoch=2).assigned is None


def test_what_a_member_has_to_give_up_is_repeated_as_long_as_others_wait_for_it() -> None:
    shard = LittleShard({"t": 2})
    a, b = Client(shard, "a", ["t"]), Client(shard, "b", ["t"])
    a.beat()
    b.beat()
    assert [shard.heartbeat(member_id="a", member_epoch=1).assigned for _ in range(10)] == [parts(0)] * 10
    assert shard.heartbeat(member_id="a", member_epoch=1, owned=parts(0)).member_epoch == 2
    assert b.beat().assigned == parts(1)


def test_a_coordinator_that_has_loaded_the_group_repeats_assignments() -> None:
    shard = LittleShard({"t": 2})
    a = Client(shard, "a", ["t"])
    a.beat()
    a.beat()
    assert shard.heartbeat(member_id="a", member_epoch=1).assigned is None
    loaded = shard.groups[GROUP] = ConsumerGroup(GROUP, shard.rules)
    loaded.log = shard.reloaded()
    assert shard.heartbeat(member_id="a", member_epoch=1).assigned == parts(0, 1)


def test_a_topic_that_appears_or_grows_is_noticed_with_the_next_heartbeat() -> None:
    shard = LittleShard({"t": 1})
    a = Client(shard, "a", ["t", "later"])
    a.beat()
    shard.set_topics({"t": 2, "later": 1})
    assert a.beat().assigned == parts(0, 1) | parts(0, of=topic_id("later").bytes)
    shard.set_topics({"t": 2})
    assert a.beat().assigned == parts(0, 1)


def test_another_subscription_is_another_epoch() -> None:
    shard = LittleShard({"t": 1, "u": 1})
    a = Client(shard, "a", ["t"])
    a.beat()
    answer = shard.heartbeat(member_id="a", member_epoch=1, topics=frozenset({"u"}), owned=parts(0))
    assert answer.assigned == frozenset()
    answer = shard.heartbeat(member_id="a", member_epoch=1, owned=frozenset())
    assert (answer.member_epoch, answer.assigned) == (2, parts(0, of=topic_id("u").bytes))


def test_the_assignor_that_most_ask_for_is_used() -> None:
    shard = LittleShard({"t": 4, "u": 4})
    clients = [Client(shard, name, ["t", "u"], assignor="range") for name in "ab"]
    settle(shard, *clients)
    assert clients[0].owned == parts(0, 1) | parts(0, 1, of=topic_id("u").bytes)


def test_a_write_that_fails_changes_nothing() -> None:
    shard = LittleShard({"t": 1})
    shard.lose = Code.not_coordinator
    assert refusal(Client(shard, "a", ["t"]).beat) is Code.not_coordinator
    assert not shard.groups
    assert Client(shard, "a", ["t"]).beat().member_epoch == 1


# -- refusing


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "", "member_epoch": 0}, Code.invalid_request),
        ({"member_id": "a", "member_epoch": -3}, Code.invalid_request),
        ({"member_id": "a", "member_epoch": 0, "rebalance_timeout_ms": -1}, Code.invalid_request),
        ({"member_id": "a", "member_epoch": 0, "owned": parts(0)}, Code.invalid_request),
        ({"member_id": "a", "member_epoch": 0, "owned": None}, Code.invalid_request),
        ({"member_id": "a", "member_epoch": 0, "topics": None}, Code.invalid_request),
        ({"member_id": "a", "member_epoch": 0, "instance_id": " "}, Code.invalid_request),
        ({"member_id": "a", "member_epoch": 0, "rack_id": ""}, Code.invalid_request),
        ({"member_id": "a", "member_epoch": -2}, Code.invalid_request),
        ({"member_id": "a", "member_epoch": 0, "assignor": "best"}, Code.unsupported_assignor),
        ({"member_id": "a", "member_epoch": 0, "regex": "(?=a)"}, Code.invalid_regular_expression),
        ({"member_id": "a", "member_epoch": 5}, Code.group_id_not_found),
    ],
)
def test_bad_requests(fields: dict[str, object], code: Code) -> None:
    shard = LittleShard({"t": 1})
    given_fields = {"topics": frozenset({"t"}), "rebalance_timeout_ms": 1, "owned": frozenset()} | fields
    assert refusal(lambda: shard.heartbeat(**given_fields)) is code
    assert not shard.written


def test_members_of_old_versions_are_named_by_the_coordinator() -> None:
    shard = LittleShard({"t": 1})
    first = {"rebalance_timeout_ms": 1, "topics": frozenset({"t"}), "owned": frozenset()}
    assert shard.heartbeat(version=0, member_id="", member_epoch=0, **first).member_id == "id-1"


def test_unknown_and_fenced_members() -> None:
    shard = LittleShard({"t": 1})
    Client(shard, "a", ["t"]).beat()
    assert refusal(lambda: shard.heartbeat(member_id="b", member_epoch=1)) is Code.unknown_member_id
    assert refusal(lambda: shard.heartbeat(member_id="b", member_epoch=-1)) is Code.unknown_member_id
    assert refusal(lambda: shard.heartbeat(member_id="a", member_epoch=2)) is Code.fenced_member_epoch
    shard.set_topics({"t": 2})
    shard.heartbeat(member_id="a", member_epoch=1, owned=parts(0))
    foreign = parts(0, 7)
    assert refusal(lambda: shard.heartbeat(member_id="a", member_epoch=1, owned=foreign)) is Code.fenced_member_epoch
    assert refusal(lambda: shard.heartbeat(member_id="a", member_epoch=1)) is Code.fenced_member_epoch


def test_a_group_has_a_largest_size() -> None:
    shard = LittleShard({"t": 1}, members_max=1)
    a = Client(shard, "a", ["t"])
    a.beat()
    assert refusal(Client(shard, "b", ["t"]).beat) is Code.group_max_size_reached
    a.beat()


def test_commits_and_fetches_go_by_the_member_epoch() -> None:
    shard = LittleShard({"t": 1})
    Client(shard, "a", ["t"]).beat()
    group = shard.group

    def commit(member_id: str, epoch: int, version: int = 9) -> None:
        group.check_commit(member_id=member_id, instance_id=None, generation=epoch, version=version)

    commit("a", 1)
    group.check_fetch(member_id="a", member_epoch=1)
    group.check_fetch(member_id=None, member_epoch=-1)
    assert refusal(lambda: commit("a", 0)) is Code.stale_member_epoch
    assert refusal(lambda: commit("a", 1, version=8)) is Code.unsupported_version
    assert refusal(lambda: commit("b", 1)) is Code.unknown_member_id
    assert refusal(lambda: commit("", -1)) is Code.unknown_member_id
    assert refusal(lambda: group.check_fetch(member_id="a", member_epoch=0)) is Code.stale_member_epoch
    assert refusal(lambda: group.check_fetch(member_id="b", member_epoch=0)) is Code.unknown_member_id


def test_commits_in_a_transaction_tell_the_epoch_in_every_version() -> None:
    """Java's exactly-once loops in groups of KIP-848: TxnOffsetCommit's version says nothing about OffsetCommit's."""
    shard = LittleShard({"t": 1})
    Client(shard, "a", ["t"]).beat()
    told = {"member_id": "a", "instance_id": None, "version": 5, "transactional": True}
    shard.group.check_commit(generation=1, **told)
    assert refusal(lambda: shard.group.check_commit(generation=0, **told)) is Code.stale_member_epoch


# -- leaving, and time


def test_what_a_member_leaves_behind_goes_to_the_others() -> None:
    shard = LittleShard({"t": 2})
    a, b = Client(shard, "a", ["t"]), Client(shard, "b", ["t"])
    settle(shard, a, b)
    b.leave()
    assert shard.group.state == "Assigning"
    assert a.beat().assigned == parts(0, 1)
    a.leave()
    assert (shard.group.state, shard.group.is_empty) == ("Empty", True)


def test_a_session_ends_in_silence() -> None:
    shard = LittleShard({"t": 2}, session_timeout_ms=45_000)
    a, b = Client(shard, "a", ["t"]), Client(shard, "b", ["t"])
    settle(shard, a, b)
    shard.pass_time(30)
    a.beat()
    shard.pass_time(30)
    assert list(shard.group.log.members) == ["a"]
    assert a.beat().assigned == parts(0, 1)
    assert refusal(b.beat) is Code.unknown_member_id


def test_a_member_that_could_not_be_removed_is_removed_later() -> None:
    shard = LittleShard({"t": 1}, session_timeout_ms=1000)
    Client(shard, "a", ["t"]).beat()
    shard.lose = Code.coordinator_not_available
    shard.pass_time(2)
    assert not shard.group.is_empty
    shard.pass_time(2)
    assert shard.group.is_empty


def test_partitions_have_to_be_given_up_in_time() -> None:
    shard = LittleShard({"t": 2}, session_timeout_ms=60_000)
    a, b = Client(shard, "a", ["t"], rebalance_timeout_ms=5000), Client(shard, "b", ["t"])
    a.beat()
    b.beat()
    a.beat()
    for _ in range(2):
        shard.pass_time(3)
        b.beat()
        if "a" in shard.group.log.members:
            shard.heartbeat(member_id="a", member_epoch=1)  # alive, but holds on to what it has
    assert list(shard.group.log.members) == ["b"]
    assert b.beat().assigned == parts(0, 1) or b.owned == parts(0, 1)


# -- static members


def test_a_static_member_comes_back_to_what_it_had_without_a_new_epoch() -> None:
    shard = LittleShard({"t": 2})
    a, b = Client(shard, "a", ["t"], instance_id="i"), Client(shard, "b", ["t"])
    settle(shard, a, b)
    held, epoch = a.owned, shard.group.log.epoch
    a.leave(for_a_while=True)
    assert b.beat().assigned is None
    again = Client(shard, "a2", ["t"], instance_id="i")
    assert again.beat().assigned == held
    assert (shard.group.log.epoch, again.epoch) == (epoch, epoch)
    assert sorted(shard.group.log.members) == ["a2", "b"]
    assert refusal(lambda: shard.heartbeat(member_id="a", member_epoch=1, instance_id="i")) is Code.fenced_instance_id


def test_an_instance_cannot_be_taken_while_it_is_in_use() -> None:
    shard = LittleShard({"t": 1})
    Client(shard, "a", ["t"], instance_id="i").beat()
    assert refusal(Client(shard, "a2", ["t"], instance_id="i").beat) is Code.unreleased_instance_id
    unknown = {"member_id": "x", "member_epoch": 1, "instance_id": "other"}
    assert refusal(lambda: shard.heartbeat(**unknown)) is Code.unknown_member_id


def test_a_static_member_that_stays_away_is_removed() -> None:
    shard = LittleShard({"t": 1}, session_timeout_ms=10_000)
    a = Client(shard, "a", ["t"], instance_id="i")
    a.beat()
    a.leave(for_a_while=True)
    shard.pass_time(11)
    assert shard.group.is_empty


# -- regular expressions


def test_a_regular_expression_follows_the_topics() -> None:
    shard = LittleShard({"app-1": 1, "other": 1})
    a = Client(shard, "a", None, regex="app-.*")
    assert a.beat().assigned == parts(0, of=topic_id("app-1").bytes)
    shard.set_topics({"app-1": 1, "other": 1, "app-2": 1})
    assert {each for each, _ in a.beat().assigned or ()} == {topic_id("app-1").bytes, topic_id("app-2").bytes}
    assert shard.group.is_subscribed("app-2")
    assert not shard.group.is_subscribed("other")
    answer = shard.heartbeat(member_id="a", member_epoch=a.epoch, regex="", topics=frozenset({"other"}), owned=a.owned)
    assert answer.assigned == frozenset()
    assert not shard.group.log.regexes


def test_an_expression_that_nobody_uses_is_forgotten() -> None:
    shard = LittleShard({"t": 1})
    a, b = Client(shard, "a", None, regex="t"), Client(shard, "b", ["t"])
    a.beat()
    b.beat()
    assert list(shard.group.log.regexes) == ["t"]
    a.leave()
    assert not shard.group.log.regexes
    assert not shard.reloaded().regexes


# -- all of it, at random


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_no_partition_is_ever_held_twice_and_all_are_held_in_the_end(data: st.DataObject) -> None:
    topics = {"t": data.draw(st.integers(1, 8)), "u": data.draw(st.integers(1, 4))}
    shard = LittleShard(topics, session_timeout_ms=10_000)
    clients: list[Client] = []
    for number in range(data.draw(st.integers(5, 40))):
        action = data.draw(st.sampled_from(["join", "beat", "beat", "beat", "leave", "crash", "grow", "time"]))
        if action == "join" and len(clients) < 6:
            wanted = data.draw(st.sampled_from([["t"], ["u"], ["t", "u"]]))
            clients.append(Client(shard, f"m{number}", wanted))
        elif action == "grow":
            topics["t"] += 1
            shard.set_topics(topics)
        elif action == "time":
            shard.pass_time(data.draw(st.integers(1, 4)))
            clients = [each for each in clients if each.epoch == 0 or each.name in shard.group.log.members]
        elif clients:
            client = data.draw(st.sampled_from(clients))
            if action in ("leave", "crash"):
                clients.remove(client)
                if action == "leave" and client.epoch:
                    client.leave()
            else:
                client.beat()
        check_invariants(shard, clients)
    shard.pass_time(9)
    for client in clients:
        if client.epoch == 0 or client.name in shard.group.log.members:
            client.beat()
    shard.pass_time(9)  # whoever crashed is gone
    live = [client for client in clients if shard.groups and client.name in shard.group.log.members]
    if live:
        settle(shard, *live)
        held = [partition for client in live for partition in client.owned]
        wanted_topics = {topic for client in live for topic in client.facts["topics"]}
        assert sorted(held) == sorted((topic_id(t).bytes, i) for t in wanted_topics for i in range(topics[t]))


def check_invariants(shard: LittleShard, clients: list[Client]) -> None:
    if not shard.groups:
        return
    log = shard.group.log
    positions = [member.position for member in log.members.values()]
    owned = [each for position in positions for each in position.assigned | position.revoking]
    assert len(owned) == len(set(owned)), "owned twice in the coordinator's eyes"
    assert set(owned) == set(log.owners)
    held = [each for client in clients if client.name in log.members for each in client.owned]
    assert len(held) == len(set(held)), "held by two clients"
    assert all(position.epoch <= log.epoch for position in positions)
    again = shard.reloaded()
    assert (again.epoch, again.target_epoch, again.members, again.targets) == (
        log.epoch,
        log.target_epoch,
        log.members,
        log.targets,
    )
    assert again.owners == log.owners
