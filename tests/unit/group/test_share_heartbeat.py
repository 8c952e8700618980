"""Share groups: epochs, what a member is given, fencing, sessions; and a random walk over all of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.errors import Code, KafkaError
from support.consumer_groups import GROUP, Client, topic_id
from support.share_groups import ShareClient, ShareShard

T = topic_id("t").bytes


def parts(*indexes: int, of: bytes = T) -> frozenset[tuple[bytes, int]]:
    return frozenset((of, index) for index in indexes)


def refusal(call: Any) -> tuple[Code, str]:
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code, caught.value.message or ""


@pytest.fixture
def shard() -> ShareShard:
    return ShareShard({"t": 2, "u": 1}, session_timeout_ms=5000)


def joined(shard: ShareShard, *names: str) -> list[ShareClient]:
    """Members that have what they shall have."""
    clients = [ShareClient(shard, name, ["t"]) for name in names]
    for client in clients:
        client.beat()
    shard.begin_states()
    for _ in range(2):
        for client in clients:
            client.beat()
    return clients


# -- joining


def test_a_member_gets_partitions_once_they_have_states(shard: ShareShard) -> None:
    a = ShareClient(shard, "a", ["t"])
    first = a.beat()
    assert (first.member_epoch, first.assigned, first.heartbeat_interval_ms) == (1, frozenset(), 500)
    assert a.beat().assigned is None
    assert shard.begin_states() == parts(0, 1)
    told = a.beat()
    assert (told.member_epoch, told.assigned) == (2, parts(0, 1))
    assert shard.share_group.state == "Stable"
    assert shard.share_group.log.target_epoch == shard.share_group.log.epoch == 2


def test_a_new_member_takes_its_share_at_once(shard: ShareShard) -> None:
    (a,) = joined(shard, "a")
    b = ShareClient(shard, "b", ["t"])
    assert len(b.beat().assigned or ()) == 1
    assert a.held & b.held, "nobody waits until another one gave it up"
    a.beat()
    assert (a.held | b.held, a.held & b.held) == (parts(0, 1), frozenset())


def test_more_members_than_partitions_share_them(shard: ShareShard) -> None:
    clients = joined(shard, "a", "b", "c", "d")
    assert sorted(len(client.held) for client in clients) == [1, 1, 1, 1]
    assert sorted(index for client in clients for _, index in client.held) == [0, 0, 1, 1]


def test_everything_is_told_to_one_that_tells_everything(shard: ShareShard) -> None:
    (a,) = joined(shard, "a")
    assert a.beat().assigned is None
    assert a.beat(topics=frozenset({"t"})).assigned == parts(0, 1)


# -- what moves the group


def test_a_topic_that_grows_or_goes_is_followed(shard: ShareShard) -> None:
    (a,) = joined(shard, "a")
    shard.set_topics({"t": 3, "u": 1})
    a.beat()
    assert (a.epoch, a.held) == (3, parts(0, 1))
    assert shard.begin_states() == parts(2)
    a.beat()
    assert (a.epoch, a.held) == (4, parts(0, 1, 2))
    shard.set_topics({"u": 1})
    a.beat()
    assert a.held == frozenset()


def test_a_member_may_change_its_mind(shard: ShareShard) -> None:
    (a,) = joined(shard, "a")
    a.beat(topics=frozenset({"u"}))
    shard.begin_states()
    a.beat()
    assert a.held == parts(0, of=topic_id("u").bytes)
    epoch = a.epoch
    for _ in range(3):
        a.beat()
    assert a.epoch == epoch, "states of topics that nobody reads are no news"


def test_a_heartbeat_without_news_writes_nothing(shard: ShareShard) -> None:
    (a,) = joined(shard, "a")
    written = len(shard.written)
    a.beat()
    assert len(shard.written) == written


# -- refusals

WRONG = [
    ({"member_id": " ", "member_epoch": 0, "topics": frozenset("t")}, "MemberId can't be empty."),
    ({"member_id": "a", "member_epoch": 0, "rack_id": "", "topics": frozenset("t")}, "RackId can't be empty."),
    ({"member_id": "a", "member_epoch": 0}, "SubscribedTopicNames must be set in first request."),
    (
        {"member_id": "a", "member_epoch": 0, "topics": frozenset()},
        "SubscribedTopicNames must be set in first request.",
    ),
    ({"member_id": "a", "member_epoch": -2}, "MemberEpoch is invalid."),
]


@pytest.mark.parametrize(("request_fields", "why"), WRONG)
def test_requests_that_make_no_sense(shard: ShareShard, request_fields: dict[str, Any], why: str) -> None:
    assert refusal(lambda: shard.share(**request_fields)) == (Code.invalid_request, why)


def test_epochs_fence(shard: ShareShard) -> None:
    (a,) = joined(shard, "a")
    assert a.epoch == 2

    def beat(epoch: int) -> Any:
        return lambda: shard.share(member_id="a", member_epoch=epoch)

    assert beat(1)().member_epoch == 2, "the last answer may have got lost"
    assert refusal(beat(3))[0] is Code.fenced_member_epoch
    shard.set_topics({"t": 4})
    a.beat()
    code, why = refusal(beat(1))
    assert code is Code.fenced_member_epoch
    assert "smaller member epoch (1)" in why and "previous member epoch (2)" in why


def test_strangers_and_groups_that_are_not_there(shard: ShareShard) -> None:
    stay, leave = {"member_id": "x", "member_epoch": 1}, {"member_id": "x", "member_epoch": -1}
    assert refusal(lambda: shard.share(**stay)) == (Code.group_id_not_found, f"Share group {GROUP} not found.")
    assert refusal(lambda: shard.share(**leave)) == (Code.group_id_not_found, f"Group {GROUP} not found.")
    joined(shard, "a")
    assert refusal(lambda: shard.share(**stay))[0] is Code.unknown_member_id
    assert refusal(lambda: shard.share(**leave))[0] is Code.unknown_member_id
    consumer = Client(shard, "c", ["t"])
    assert refusal(consumer.beat) == (Code.group_id_not_found, f"Group {GROUP} is not a consumer group.")


def test_a_group_of_another_type_is_left_alone(shard: ShareShard) -> None:
    Client(shard, "c", ["t"]).beat()
    member = ShareClient(shard, "a", ["t"])
    assert refusal(member.beat) == (Code.group_id_not_found, f"Group {GROUP} is not a share group.")


def test_a_group_that_is_full() -> None:
    shard = ShareShard({"t": 1}, members_max=1)
    (a,) = joined(shard, "a")
    why = "The share group has reached its maximum capacity of 1 members."
    assert refusal(ShareClient(shard, "b", ["t"]).beat) == (Code.group_max_size_reached, why)
    a.beat()


def test_what_only_consumers_may_do(shard: ShareShard) -> None:
    joined(shard, "a")
    group = shard.share_group
    commit = {"member_id": "", "instance_id": None, "generation": -1, "version": 9}
    assert refusal(lambda: group.check_commit(**commit))[0] is Code.group_id_not_found
    assert refusal(group.check_offset_delete)[0] is Code.group_id_not_found
    assert refusal(lambda: group.join(None, None, 0.0))[0] is Code.inconsistent_group_protocol
    assert not group.may_expire


# -- the end


def test_who_leaves_is_replaced(shard: ShareShard) -> None:
    a, b = joined(shard, "a", "b")
    b.leave()
    a.beat()
    assert a.held == parts(0, 1)
    a.leave()
    assert shard.share_group.state == "Empty"


def test_who_is_silent_is_removed(shard: ShareShard) -> None:
    a, _ = joined(shard, "a", "b")
    shard.pass_time(3)
    a.beat()
    shard.pass_time(3)
    assert set(shard.share_group.log.members) == {"a"}
    a.beat()
    assert a.held == parts(0, 1)


def test_a_removal_that_cannot_be_written_is_tried_again(shard: ShareShard) -> None:
    joined(shard, "a")
    shard.lose = Code.coordinator_not_available
    shard.pass_time(6)
    assert not shard.share_group.is_empty
    shard.pass_time(2)
    assert shard.share_group.is_empty


def test_nothing_is_left_of_a_group_that_is_deleted(shard: ShareShard) -> None:
    (a,) = joined(shard, "a")
    a.leave()
    gone = {key for key, _ in shard.share_group.tombstones()}
    lasting = dict(shard.written)
    assert {key for key, value in lasting.items() if value is not None} <= gone


# -- all together

STEPS = st.lists(
    st.tuples(st.sampled_from(["beat", "leave", "states", "grow", "time", "lose"]), st.integers(0, 4)), max_size=40
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_whatever_happens_everybody_has_something_in_the_end(steps: list[tuple[str, int]]) -> None:
    shard = ShareShard({"t": 2, "u": 1}, session_timeout_ms=5000)
    clients = [ShareClient(shard, f"m{at}", ["t", "u"] if at % 2 else ["t"]) for at in range(5)]
    for step, at in steps:
        play(shard, clients[at], step, at)
    for _ in range(4):
        for client in clients:
            shard.lose = None
            play(shard, client, "beat", 0)
        shard.begin_states()
    everything = {(T, index) for index in range(len(shard.image.topics["t"].partitions))}
    everything |= parts(0, of=topic_id("u").bytes)
    assert frozenset().union(*(client.held for client in clients)) == everything
    assert all(client.held for client in clients)
    told, written = shard.share_group.log, shard.reloaded_share()
    assert (written.members, written.targets, written.states) == (told.members, told.targets, told.states)
    assert (written.epoch, written.target_epoch) == (told.epoch, told.target_epoch)


def play(shard: ShareShard, client: ShareClient, step: str, at: int) -> None:
    try:
        if step == "beat":
            client.beat()
        elif step == "leave" and client.epoch:
            client.leave()
    except KafkaError as error:
        if error.code in (Code.unknown_member_id, Code.group_id_not_found):
            client.epoch = 0
    if step == "states" and GROUP in shard.groups:
        shard.begin_states()
    elif step == "grow":
        shard.set_topics({"t": 2 + at, "u": 1})
    elif step == "time":
        shard.pass_time(at)
    elif step == "lose":
        shard.lose = Code.coordinator_not_available
