"""What comes into groups: names that are too long, groups that nobody joins, very many that go at once."""

import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kio.schema.alter_client_quotas.v1 import request as quotas
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.schema.create_topics.v4 import request as topics
from kio.schema.create_topics.v4.response import CreateTopicsResponse
from kio.schema.describe_client_quotas.v0.request import DescribeClientQuotasRequest
from kio.schema.describe_client_quotas.v0.response import DescribeClientQuotasResponse
from kio.schema.errors import ErrorCode as Code
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.schema.init_producer_id.v4.response import InitProducerIdResponse
from kio.schema.join_group.v6.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v6.response import JoinGroupResponse
from kio.schema.list_groups.v0.request import ListGroupsRequest
from kio.schema.list_groups.v0.response import ListGroupsResponse
from kio.schema.offset_commit.v8 import request as commits
from kio.schema.offset_commit.v8.response import OffsetCommitResponse
from kio.schema.sync_group.v4.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v4.response import SyncGroupResponse
from support.frames import Connection, encode_request, framed
from support.group_member import Member, MemberProcess, settled
from support.librdkafka import make_topic
from support.process import BrokerProcess
from support.raw_requests import header, text
from support.waiting import eventually

LONG = "x" * 40_000
SESSION_S = 6
MANY_GROUPS = 10_000
AT_ONCE = 100
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",  # one shard, whose groups have one timer
    "offsets.retention.check.interval.ms": "3000",
}
Ask = Callable[[Any, Any], Any]
Attack = Callable[..., AbstractContextManager[BrokerProcess]]


@pytest.fixture(scope="module")
def coordinator(brokers: dict[int, BrokerProcess]) -> BrokerProcess:
    """Of every group and transactional id."""
    first = next(iter(brokers.values()))
    with Connection(first.port) as connection:
        for key_type in (1, 0):
            wanted = FindCoordinatorRequest(key_type=key_type, coordinator_keys=("g",))
            found = eventually(
                lambda wanted=wanted: connection.ask(wanted, FindCoordinatorResponse).coordinators[0],
                lambda seen: seen.error_code is Code.none,
            )
    return brokers[int(found.node_id)]


@pytest.fixture
def ask(coordinator: BrokerProcess) -> Iterator[Ask]:
    with Connection(coordinator.port) as connection:
        yield connection.ask


def join(group: str = "g", **fields: Any) -> JoinGroupRequest:
    subscription = JoinGroupRequestProtocol(name=fields.pop("protocol", "range"), metadata=bytes(6))
    asked = {
        "group_id": group,
        "session_timeout": timedelta(seconds=SESSION_S),
        "rebalance_timeout": timedelta(seconds=1),
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": (subscription,),
    }
    return JoinGroupRequest(**{**asked, **fields})


def heartbeat(group: str = "new", member: str = "m", **fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout=timedelta(seconds=60),
        subscribed_topic_names=("t",),
        topic_partitions=(),
        **fields,
    )


def commit(topic: str, group: str = "g") -> commits.OffsetCommitRequest:
    one = commits.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
    named = commits.OffsetCommitRequestTopic(name=topic, partitions=(one,))
    return commits.OffsetCommitRequest(group_id=group, member_id="", topics=(named,))


def old_commit(group: str, topic: str, *, retention_ms: int = -1) -> bytes:
    """Version 2, of a consumer that has no members."""
    member = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">q", retention_ms)
    return framed(header(8, 2) + member + struct.pack(">i", 1) + text(topic) + struct.pack(">iiqh", 1, 0, 5, 0))


def test_a_deadline_that_cannot_be_met_is_nobody_elses(attack: Attack, coordinator: BrokerProcess, name: str) -> None:
    """Once, a static member in a group with this name ended the sessions of all groups of its coordinator for ever."""
    make_topic(coordinator.bootstrap, name, partitions=4)
    session = {"session_timeout_ms": SESSION_S * 1000, "heartbeat_interval_ms": 300}
    killed = MemberProcess(coordinator.bootstrap, name, [name], **session)
    left = Member(coordinator.bootstrap, name, [name], **session)
    try:
        killed.until_owns(2)
        left.until_owns(2)
        with attack(coordinator), Connection(coordinator.port) as connection:
            joined = connection.ask(join(LONG, group_instance_id="i"), JoinGroupResponse)
            assert joined.error_code is Code.invalid_group_id
            client = Connection(coordinator.port, client_id="c" * 32_760)
            with client:  # a member's id begins with as much of it as a record has room for
                joined = client.ask(join(name + "-2"), JoinGroupResponse)
                assert joined.error_code is Code.member_id_required and len(joined.member_id) < 1_100
            killed.kill()
            settled([left], 4, timeout_s=2 * SESSION_S)
    finally:
        killed.kill()
        left.close()


def test_names_that_no_record_can_hold(ask: Ask, attack: Attack, coordinator: BrokerProcess, name: str) -> None:
    make_topic(coordinator.bootstrap, name)
    entity = quotas.EntityData(entity_type="user", entity_name=LONG)
    change = quotas.OpData(key="producer_byte_rate", value=1000.0, remove=False)
    altering = quotas.AlterClientQuotasRequest(
        entries=(quotas.EntryData(entity=(entity,), ops=(change,)),), validate_only=False
    )
    with attack(coordinator):
        for fields in ({"group_instance_id": LONG}, {"protocol_type": LONG}, {"protocol": LONG}, {"member_id": LONG}):
            assert ask(join(**fields), JoinGroupResponse).error_code is Code.invalid_request, fields.keys()
        assert ask(heartbeat(LONG), ConsumerGroupHeartbeatResponse).error_code is Code.invalid_group_id
        for fields in ({"member": LONG}, {"instance_id": LONG}, {"subscribed_topic_regex": LONG}):
            answer = ask(heartbeat(**fields), ConsumerGroupHeartbeatResponse)
            assert answer.error_code is Code.invalid_request, fields.keys()
        committed = ask(commit(name, LONG), OffsetCommitResponse).topics[0].partitions[0]
        assert committed.error_code is Code.invalid_group_id
        committed = ask(commit(LONG), OffsetCommitResponse).topics[0].partitions[0]
        assert committed.error_code is Code.unknown_topic_or_partition
        beginning = InitProducerIdRequest(transactional_id=LONG, transaction_timeout=timedelta(seconds=60))
        assert ask(beginning, InitProducerIdResponse).error_code is Code.invalid_request
        assert ask(altering, AlterClientQuotasResponse).entries[0].error_code is Code.invalid_request
    listed = ask(ListGroupsRequest(), ListGroupsResponse)
    assert listed.error_code is Code.none and not any(len(one.group_id) > 1000 for one in listed.groups)
    described = ask(DescribeClientQuotasRequest(components=(), strict=False), DescribeClientQuotasResponse)
    assert described.error_code is Code.none


def test_values_at_the_limits(ask: Ask, attack: Attack, coordinator: BrokerProcess, name: str) -> None:
    make_topic(coordinator.bootstrap, name)
    with attack(coordinator):
        check_a_message_is_cut(ask)
        check_an_offset_is_kept_for_ever(coordinator, name)
        check_a_group_that_cannot_move(ask, f"{name}-classic")


def check_a_message_is_cut(ask: Ask) -> None:
    """The answer has the name, which just fits, and the message why it is refused, which quotes it."""
    wanted = topics.CreatableTopic(
        name="x" * 32_700, num_partitions=1, replication_factor=-1, assignments=(), configs=()
    )
    request = topics.CreateTopicsRequest(topics=(wanted,), timeout=timedelta(seconds=10))
    assert ask(request, CreateTopicsResponse).topics[0].error_code is Code.invalid_topic_exception


def check_an_offset_is_kept_for_ever(coordinator: BrokerProcess, topic: str) -> None:
    with Connection(coordinator.port) as connection:
        connection.send(old_commit("for-ever", topic, retention_ms=2**63 - 1))
        assert connection.read_frame().endswith(bytes(2))


def check_a_group_that_cannot_move(ask: Ask, group: str) -> None:
    """Six bytes are a consumer's subscription without its end."""
    joined = ask(join(group, group_instance_id="i"), JoinGroupResponse)
    assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"abc")
    syncing = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id="i",
        assignments=(assignment,),
    )
    assert ask(syncing, SyncGroupResponse).error_code is Code.none
    assert ask(heartbeat(group), ConsumerGroupHeartbeatResponse).error_code is Code.group_id_not_found


def pipelined(broker: BrokerProcess, requests: list[bytes]) -> None:
    with Connection(broker.port) as connection:
        for begin in range(0, len(requests), AT_ONCE):
            connection.send(b"".join(requests[begin : begin + AT_ONCE]))
            for _ in requests[begin : begin + AT_ONCE]:
                connection.read_frame()


def groups_like(ask: Ask, prefix: str) -> int:
    return sum(one.group_id.startswith(prefix) for one in ask(ListGroupsRequest(), ListGroupsResponse).groups)


def test_groups_that_nobody_joins(ask: Ask, attack: Attack, coordinator: BrokerProcess, name: str) -> None:
    """An id is given out for each, and never used: few are kept, and none for long. Those with members stay."""
    asked = [framed(encode_request(join(f"{name}-{number}"))) for number in range(2000)]
    with attack(coordinator):
        pipelined(coordinator, asked)
        assert groups_like(ask, name) <= 500
    eventually(lambda: groups_like(ask, name), lambda count: count == 0, timeout_s=2 * SESSION_S)


def test_groups_that_go_with_a_topic(ask: Ask, attack: Attack, coordinator: BrokerProcess, name: str) -> None:
    """All in one breath, it was half a second for everybody else; then the groups themselves, which are empty."""
    make_topic(coordinator.bootstrap, name)
    pipelined(coordinator, [old_commit(f"{name}-{number}", name) for number in range(MANY_GROUPS)])
    assert groups_like(ask, name) == MANY_GROUPS
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap})
    with attack(coordinator):
        admin.delete_topics([name])[name].result(30)
        eventually(lambda: groups_like(ask, name), lambda count: count == 0)
