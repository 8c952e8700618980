"""Groups that are too large for a heartbeat to compute their target: it costs the loop little, and comes in time."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from ottla.errors import Code
from ottla.group.heartbeats.targets import ASSIGNMENT_SECONDS_MIN
from support.consumer_groups import Client, LittleShard, topic_id
from support.share_groups import ShareClient, ShareShard

TOPICS = {f"t{number:04}": 1 for number in range(1500)}
WIDE_TOPICS = dict.fromkeys(TOPICS, 3)  # enough of them for two members to be a large group
MEMBERS = 101
HELD_SECONDS_MAX = 0.02


def held_seconds(call: Callable[[], Any]) -> float:
    """Of this thread's CPU, the least of three times: a loaded machine is nobody's fault."""
    found = []
    for _ in range(3):
        begun = time.thread_time()
        call()
        found.append(time.thread_time() - begun)
    return min(found)


@pytest.fixture(scope="module")
def crowd() -> tuple[LittleShard, list[Client]]:
    """All subscribe to everything, save a topic that each leaves out."""
    shard = LittleShard(TOPICS)
    names = sorted(TOPICS)
    members = [Client(shard, f"m{at}", [*names[:at], *names[at + 1 :]]) for at in range(MEMBERS)]
    for member in members:
        member.beat()
    settle(shard, members)
    return shard, members


def settle(shard: LittleShard, members: list[Client]) -> None:
    for _ in range(6):
        shard.now += ASSIGNMENT_SECONDS_MIN
        for member in members:
            member.beat()
        shard.compute()


def everything(shard: LittleShard) -> set[Any]:
    found = [(topic.id.bytes, index) for topic in shard.image.topics.values() for index in range(len(topic.partitions))]
    return set(found)


def test_a_changed_subscription_holds_the_loop_for_milliseconds(crowd: tuple[LittleShard, list[Client]]) -> None:
    shard, members = crowd
    assert set().union(*(member.owned for member in members)) == everything(shard)
    assert sum(len(member.owned) for member in members) == len(everything(shard)), "nobody shares"
    stranger = members[0]
    wanted = iter([frozenset({"t0001"}), frozenset({"t0002"}), frozenset({"t0003"})])

    def change() -> None:
        stranger.beat(topics=next(wanted))

    epoch = shard.group.log.epoch
    assert held_seconds(change) < HELD_SECONDS_MAX
    assert shard.group.log.epoch == epoch + 3 and shard.group.state == "Assigning"
    assert len(shard.computing) == 1, "one computation at a time"
    shard.compute()
    assert shard.group.log.target_epoch == shard.group.log.epoch
    settle(shard, members)
    assert stranger.owned == {(topic_id("t0003").bytes, 0)} or not stranger.owned
    assert shard.group.state == "Stable"


def test_other_heartbeats_and_leaving_hold_it_no_longer(crowd: tuple[LittleShard, list[Client]]) -> None:
    shard, members = crowd
    settle(shard, members)
    shard.set_topics(TOPICS | {"new": 1})
    assert held_seconds(lambda: members[1].beat()) < HELD_SECONDS_MAX, "topics have changed"
    leaving = iter(members[-3:])
    assert held_seconds(lambda: next(leaving).leave()) < HELD_SECONDS_MAX
    settle(shard, members[:-3])
    assert shard.group.state == "Stable"
    assert set().union(*(member.owned for member in members[:-3])) == everything(shard) - {(topic_id("new").bytes, 0)}
    for member in members[-3:]:
        member.beat()
    settle(shard, members)


def test_it_is_computed_once_per_interval(crowd: tuple[LittleShard, list[Client]]) -> None:
    shard, members = crowd
    settle(shard, members)
    members[1].beat(topics=frozenset({"t0001"}))
    shard.compute()
    members[1].beat(topics=frozenset(TOPICS))
    assert not shard.computing, "the last one has only just ended"
    shard.now += ASSIGNMENT_SECONDS_MIN
    members[2].beat()
    assert len(shard.computing) == 1
    settle(shard, members)


def test_a_group_that_changes_meanwhile_gets_the_target_all_the_same(crowd: tuple[LittleShard, list[Client]]) -> None:
    """Otherwise a member that always changes would keep all others from theirs."""
    shard, members = crowd
    settle(shard, members)
    members[1].beat(topics=frozenset({"t0001"}))
    (group, effect), shard.computing = shard.computing[0], []
    work = effect.begin()
    assert work is not None
    late = members.pop()
    late.leave()
    found, before = work(), shard.group.log.epoch
    shard.perform(group, effect.then(found, shard.now))
    log = shard.group.log
    assert log.target_epoch == before - 1 and log.epoch == before, "it is that of the epoch before"
    assert late.name not in log.targets
    settle(shard, members)
    assert log.target_epoch == log.epoch and shard.group.state == "Stable"
    assert shard.reloaded().targets == log.targets and shard.reloaded().epoch == log.epoch


def test_the_first_members_join_without_an_assignment() -> None:
    """As in Kafka 4.3: epoch 1 has an empty target."""
    shard = LittleShard(WIDE_TOPICS)
    first = Client(shard, "a", TOPICS)
    second = Client(shard, "b", TOPICS)
    assert (first.beat().member_epoch, first.owned) == (1, frozenset())
    assert second.beat().member_epoch == 1
    settle(shard, [first, second])
    assert first.owned | second.owned == everything(shard) and not first.owned & second.owned
    assert first.epoch == second.epoch == shard.group.log.epoch


def test_a_computation_that_failed_is_tried_again() -> None:
    shard = LittleShard(WIDE_TOPICS)
    member, other = Client(shard, "a", TOPICS), Client(shard, "b", TOPICS)
    member.beat()
    other.beat()
    (group, effect), shard.computing = shard.computing[0], []
    shard.perform(group, effect.then(None, shard.now))
    settle(shard, [member, other])
    assert member.owned | other.owned == everything(shard)


def test_a_target_that_cannot_be_written_is_computed_again() -> None:
    shard = LittleShard(WIDE_TOPICS)
    member, other = Client(shard, "a", TOPICS), Client(shard, "b", TOPICS)
    member.beat()
    other.beat()
    shard.lose = Code.coordinator_not_available
    shard.compute()
    settle(shard, [member, other])
    assert member.owned | other.owned == everything(shard)


def test_unchanged_topics_are_compared_once_with_each_image() -> None:
    shard = LittleShard({"t": 2})
    member = Client(shard, "a", ["t"])
    member.beat()
    member.beat()
    shard.set_topics({"t": 2, "other": 1})
    member.beat()
    assert shard.group.seen.is_current(shard.image)


def test_a_large_share_group() -> None:
    shard = ShareShard(TOPICS)
    names = sorted(TOPICS)
    members = [ShareClient(shard, f"m{at:03}", [*names[:at], *names[at + 1 :]]) for at in range(MEMBERS)]
    for member in members:
        member.beat()
    shard.begin_states()
    for _ in range(3):
        shard.now += ASSIGNMENT_SECONDS_MIN
        for member in members:
            member.beat()
        shard.compute()
    for member in members:
        member.beat()
    assert set().union(*(member.held for member in members)) == everything(shard)
    wanted = iter([frozenset({"t0001"}), frozenset({"t0002"}), frozenset({"t0003"})])
    stranger = members[0]

    def change() -> None:
        shard.share(member_id=stranger.name, member_epoch=stranger.epoch, topics=next(wanted))

    assert held_seconds(change) < HELD_SECONDS_MAX
    assert held_seconds(lambda: members[1].beat()) < HELD_SECONDS_MAX
    assert held_seconds(lambda: shard.share_group.log.subscribed) < HELD_SECONDS_MAX


def test_names_too_long_for_any_topic_are_not_kept() -> None:
    """Kafka accepts them, so they are no error; and they match nothing, so nobody misses them."""
    longest, too_long = "x" * 249, "y" * 250
    shard = LittleShard({longest: 1})
    member = Client(shard, "a", [longest, too_long])
    member.beat()
    epoch = shard.group.log.epoch
    assert member.owned == {(topic_id(longest).bytes, 0)}
    assert shard.group.log.members["a"].subscription.topics == {longest}
    member.beat(topics=frozenset({longest, too_long, "z" * 10_000}))
    assert shard.group.log.epoch == epoch, "nothing has changed"


def test_a_share_group_does_not_keep_them_either() -> None:
    shard = ShareShard({"t": 1})
    member = ShareClient(shard, "a", ["y" * 250])
    assert member.beat(client_host="/1.2.3.4").member_epoch == 1
    assert shard.share_group.log.members["a"].subscription.topics == frozenset()
