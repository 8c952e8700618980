"""What no client library sends: unknown and fenced members, wrong generations, empty names. Kafka's codes, no harm."""

from datetime import timedelta
from typing import Any

import pytest
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_groups.v2.response import DeleteGroupsResponse
from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.describe_groups.v5.response import DescribeGroupsResponse
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v2.request import LeaveGroupRequest as LeaveGroupRequestV2
from kio.schema.leave_group.v2.response import LeaveGroupResponse as LeaveGroupResponseV2
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v9.response import OffsetCommitResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse
from support.frames import Connection
from support.group_member import Member
from support.librdkafka import make_topic
from support.process import BrokerProcess
from support.waiting import eventually

BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
QUICK = {"heartbeat_interval_ms": 300, "session_timeout_ms": 10_000}
UNKNOWN_TOPIC, ILLEGAL_GENERATION, INCONSISTENT_PROTOCOL, INVALID_GROUP_ID = 3, 22, 23, 24
UNKNOWN_MEMBER, INVALID_SESSION_TIMEOUT, FENCED_INSTANCE, GROUP_NOT_FOUND, NON_EMPTY = 25, 26, 82, 69, 68


@pytest.fixture
def connection(broker: BrokerProcess):  # type: ignore[no-untyped-def]
    with Connection(broker.port) as opened:
        yield opened


@pytest.fixture
def group(connection: Connection, bootstrap: str, name: str):  # type: ignore[no-untyped-def]
    """A stable group of one static member, which must not notice anything."""
    make_topic(bootstrap, name)
    member = Member(bootstrap, name, [name], group_instance_id="i", **QUICK)
    member.until_owns(1)
    yield name
    assert len(member.assigned) == 1 and not member.errors
    member.close()


def heartbeat(connection: Connection, group: str, **fields: Any) -> int:
    asked = {"generation_id": 1, "member_id": "nobody", "group_instance_id": None, **fields}
    return int(connection.ask(HeartbeatRequest(group_id=group, **asked), HeartbeatResponse).error_code)


def commit(connection: Connection, group: str, topic: str, **fields: Any) -> int:
    asked = {"generation_id_or_member_epoch": 1, "member_id": "nobody", "group_instance_id": None, **fields}
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
    )
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    answer = connection.ask(OffsetCommitRequest(group_id=group, topics=topics, **asked), OffsetCommitResponse)
    return int(answer.topics[0].partitions[0].error_code)


def join(connection: Connection, group: str, **fields: Any) -> int:
    asked = {
        "session_timeout": timedelta(seconds=10),
        "rebalance_timeout": timedelta(seconds=10),
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": (JoinGroupRequestProtocol(name="range", metadata=b""),),
        "reason": None,
        **fields,
    }
    return int(connection.ask(JoinGroupRequest(group_id=group, **asked), JoinGroupResponse).error_code)


def member_id_of(connection: Connection, group: str) -> str:
    asked = DescribeGroupsRequest(groups=(group,), include_authorized_operations=False)
    return str(connection.ask(asked, DescribeGroupsResponse).groups[0].members[0].member_id)


def test_strangers_and_old_generations(connection: Connection, group: str) -> None:
    member = member_id_of(connection, group)
    assert heartbeat(connection, group) == UNKNOWN_MEMBER
    assert heartbeat(connection, group, member_id=member, generation_id=7) == ILLEGAL_GENERATION
    assert heartbeat(connection, group, member_id="other", group_instance_id="i") == FENCED_INSTANCE
    assert heartbeat(connection, "no-such-group") == UNKNOWN_MEMBER
    assert commit(connection, group, group) == UNKNOWN_MEMBER
    assert commit(connection, group, group, member_id=member, generation_id_or_member_epoch=9) == ILLEGAL_GENERATION
    assert commit(connection, group, group, member_id="x", group_instance_id="i") == FENCED_INSTANCE
    assert commit(connection, group, group, member_id="", generation_id_or_member_epoch=-1) == UNKNOWN_MEMBER
    assert commit(connection, "no-such-group", group) == GROUP_NOT_FOUND
    assert commit(connection, group, "no-such-topic") == UNKNOWN_TOPIC


def test_joins_that_are_refused(connection: Connection, group: str) -> None:
    assert join(connection, "") == INVALID_GROUP_ID
    assert join(connection, group, session_timeout=timedelta(milliseconds=1)) == INVALID_SESSION_TIMEOUT
    assert join(connection, group, member_id="nobody") == UNKNOWN_MEMBER
    assert join(connection, group, protocol_type="connect") == INCONSISTENT_PROTOCOL
    assert join(connection, group, protocols=()) == INCONSISTENT_PROTOCOL
    assert join(connection, "no-such-group", member_id="somebody") == UNKNOWN_MEMBER


def test_syncs_and_leaves_that_are_refused(connection: Connection, group: str) -> None:
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id="nobody",
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(),
    )
    assert int(connection.ask(sync, SyncGroupResponse).error_code) == UNKNOWN_MEMBER
    members = (MemberIdentity(member_id="nobody", group_instance_id=None, reason=None),)
    left = connection.ask(LeaveGroupRequest(group_id=group, members=members), LeaveGroupResponse)
    assert int(left.error_code) == 0 and [int(one.error_code) for one in left.members] == [UNKNOWN_MEMBER]


@pytest.mark.usefixtures("group")  # so that there is a coordinator
def test_nobody_leaves_a_group_that_does_not_exist(connection: Connection) -> None:
    """Each member is told so; before v3, where there is but one, the answer is for it."""
    asked = [("nobody", None), ("somebody", "i"), ("", "i")]
    members = tuple(MemberIdentity(member_id=one, group_instance_id=instance, reason=None) for one, instance in asked)
    left = connection.ask(LeaveGroupRequest(group_id="no-such-group", members=members), LeaveGroupResponse)
    assert int(left.error_code) == 0
    told = [(one.member_id, one.group_instance_id, int(one.error_code)) for one in left.members]
    assert told == [(*one, UNKNOWN_MEMBER) for one in asked]
    alone = LeaveGroupRequestV2(group_id="no-such-group", member_id="nobody")
    assert int(connection.ask(alone, LeaveGroupResponseV2).error_code) == UNKNOWN_MEMBER
    nowhere = connection.ask(LeaveGroupRequest(group_id="", members=members), LeaveGroupResponse)
    assert (int(nowhere.error_code), nowhere.members) == (INVALID_GROUP_ID, ())


def test_groups_that_cannot_be_deleted(connection: Connection, group: str) -> None:
    answer = connection.ask(DeleteGroupsRequest(groups_names=(group, "no-such-group", "")), DeleteGroupsResponse)
    codes = {result.group_id: int(result.error_code) for result in answer.results}
    assert codes == {group: NON_EMPTY, "no-such-group": GROUP_NOT_FOUND, "": GROUP_NOT_FOUND}


def test_several_coordinators_at_once(connection: Connection, broker: BrokerProcess) -> None:
    def found() -> dict[str, int]:
        asked = FindCoordinatorRequest(key_type=0, coordinator_keys=("a", "b", "c"))
        answer = connection.ask(asked, FindCoordinatorResponse)
        return {one.key: one.port for one in answer.coordinators}

    assert eventually(found, lambda seen: -1 not in seen.values()) == dict.fromkeys("abc", broker.port)
