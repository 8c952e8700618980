"""ListOffsets and DeleteRecords as no good client sends them: Kafka's codes."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.delete_records.v2.response import DeleteRecordsResponse
from kio.schema.errors import ErrorCode as Code
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.list_offsets.v6 import request as offsets6
from kio.schema.list_offsets.v6.response import ListOffsetsResponse as ListOffsetsResponseV6
from kio.schema.list_offsets.v7 import request as offsets7
from kio.schema.list_offsets.v7.response import ListOffsetsResponse as ListOffsetsResponseV7
from support.frames import Connection
from support.librdkafka import Sent, make_topic, send
from support.process import BrokerProcess
from support.waiting import eventually

VERSIONS = {6: (offsets6, ListOffsetsResponseV6), 7: (offsets7, ListOffsetsResponseV7)}
LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, NOBODY_KNOWS = -1, -3, -4, -99
GROUP, TRANSACTION, SHARE = 0, 1, 2
INTERNAL = {"__consumer_offsets": (GROUP, "g"), "__transaction_state": (TRANSACTION, "t")}


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[Connection]:
    with Connection(broker.port) as opened:
        yield opened


def listed(
    connection: Connection, *asked: tuple[str, list[tuple[int, int]]], version: int
) -> list[tuple[str, int, Code, int]]:
    """Topics with pairs of partition and timestamp; the answer's lines."""
    module, response = VERSIONS[version]
    topics = tuple(
        module.ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                module.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=timestamp)
                for index, timestamp in parts
            ),
        )
        for topic, parts in asked
    )
    answer = connection.ask(module.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics), response)
    return sorted(
        (topic.name, one.partition_index, one.error_code, one.offset)
        for topic in answer.topics
        for one in topic.partitions
    )


def test_a_partition_twice(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=2)
    once, twice = (name, 1, Code.none, 0), (name, 0, Code.invalid_request, -1)
    together = (name, [(0, LATEST), (1, LATEST), (0, LATEST)])
    # A topic that was made just now may not have its leader yet.
    eventually(lambda: listed(connection, together, version=7), lambda seen: seen == [twice, once])
    apart = [(name, [(0, LATEST)]), (name, [(0, MAX_TIMESTAMP), (1, LATEST)])]
    assert listed(connection, *apart, version=7) == [twice, once]


def test_timestamps_that_a_version_does_not_know(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    send(bootstrap, name, [Sent(b"one")])
    refused = [(name, 0, Code.unsupported_version, -1)]
    assert listed(connection, (name, [(0, MAX_TIMESTAMP)]), version=6) == refused
    assert listed(connection, (name, [(0, MAX_TIMESTAMP)]), version=7) == [(name, 0, Code.none, 0)]
    assert listed(connection, (name, [(0, EARLIEST_LOCAL)]), version=7) == refused
    assert listed(connection, (name, [(0, NOBODY_KNOWS)]), version=7) == refused


@pytest.mark.parametrize("topic", [*INTERNAL, "__share_group_state"])
def test_records_of_internal_topics_stay(connection: Connection, bootstrap: str, topic: str) -> None:
    if topic in INTERNAL:
        kind, key = INTERNAL[topic]
        wanted = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
        eventually(
            lambda: connection.ask(wanted, FindCoordinatorResponse).coordinators[0].error_code,
            lambda code: code is Code.none,
        )
    else:
        make_topic(bootstrap, topic)
    assert deleted(connection, topic, 0) is Code.invalid_topic_exception
    assert deleted(connection, topic, 10_000) is Code.unknown_topic_or_partition


def deleted(connection: Connection, topic: str, index: int) -> Code:
    partition = DeleteRecordsPartition(partition_index=index, offset=0)
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=topic, partitions=(partition,)),), timeout=timedelta(seconds=5)
    )
    (answered,) = connection.ask(request, DeleteRecordsResponse).topics
    return answered.partitions[0].error_code
