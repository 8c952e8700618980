"""Elections, reassignments, unregistering and min.insync.replicas: every refusal with Kafka's code and words."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.alter_partition_reassignments.v1 import request as alter
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse
from kio.schema.elect_leaders.v2 import request as elect
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.errors import ErrorCode as Code
from kio.schema.incremental_alter_configs.v1 import request as configs
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from support.frames import Connection
from support.librdkafka import make_topic
from support.process import BrokerProcess

BROKER = 4
SET, DELETE = 0, 1


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[Connection]:
    with Connection(broker.port) as opened:
        yield opened


@pytest.mark.parametrize(
    ("kind", "index", "code", "message"),
    [
        (0, 0, Code.election_not_needed, "Leader election not needed for topic partition."),
        (1, 0, Code.election_not_needed, "Leader election not needed for topic partition."),
        (0, 7, Code.unknown_topic_or_partition, "No such partition as {name}-7"),
    ],
)
def test_elections(
    bootstrap: str, connection: Connection, name: str, kind: int, index: int, code: Code, message: str
) -> None:
    make_topic(bootstrap, name)
    asked = (elect.TopicPartitions(topic=name, partitions=(index,)),)
    request = elect.ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout=timedelta(seconds=5))
    answer = connection.ask(request, ElectLeadersResponse)
    ((result,),) = [topic.partition_result for topic in answer.replica_election_results]
    assert (answer.error_code, result.error_code) == (Code.none, code)
    assert result.error_message == message.format(name=name)


@pytest.mark.parametrize(
    ("index", "replicas", "same_factor", "code", "message"),
    [
        (0, (1,), True, Code.none, None),
        (0, None, False, Code.no_reassignment_in_progress, None),
        (5, (1,), False, Code.unknown_topic_or_partition, "Unable to find partition {name}:5."),
        (
            0,
            (9,),
            False,
            Code.invalid_replica_assignment,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            0,
            (1, 1),
            True,
            Code.invalid_replica_assignment,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            0,
            (),
            False,
            Code.invalid_replica_assignment,
            "The manual partition assignment includes an empty replica list.",
        ),
    ],
)
def test_reassignments(
    bootstrap: str,
    connection: Connection,
    name: str,
    index: int,
    replicas: tuple[int, ...] | None,
    same_factor: bool,
    code: Code,
    message: str | None,
) -> None:
    make_topic(bootstrap, name)
    line = alter.ReassignablePartition(partition_index=index, replicas=replicas)
    request = alter.AlterPartitionReassignmentsRequest(
        timeout=timedelta(seconds=5),
        allow_replication_factor_change=not same_factor,
        topics=(alter.ReassignableTopic(name=name, partitions=(line,)),),
    )
    answer = connection.ask(request, AlterPartitionReassignmentsResponse)
    ((result,),) = [topic.partitions for topic in answer.responses]
    assert (answer.error_code, answer.allow_replication_factor_change) == (Code.none, not same_factor)
    assert (result.error_code, result.error_message) == (code, message and message.format(name=name))
    listed = connection.ask(
        ListPartitionReassignmentsRequest(timeout=timedelta(seconds=5), topics=None), ListPartitionReassignmentsResponse
    )
    assert listed.topics == ()


def test_unregister_a_stranger(connection: Connection) -> None:
    answer = connection.ask(UnregisterBrokerRequest(broker_id=99), UnregisterBrokerResponse)
    assert answer.error_code is Code.broker_id_not_registered


@pytest.mark.parametrize(
    ("resource", "operation", "message"),
    [
        ("", DELETE, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
        ("1", SET, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        ("", SET, None),
    ],
)
def test_min_insync_replicas(connection: Connection, resource: str, operation: int, message: str | None) -> None:
    answer = connection.ask(_min_isr(resource, operation), IncrementalAlterConfigsResponse)
    (result,) = answer.responses
    assert (result.error_code, result.error_message) == (Code.invalid_config if message else Code.none, message)


def _min_isr(resource: str, operation: int) -> Any:
    change = configs.AlterableConfig(
        name="min.insync.replicas", config_operation=operation, value="1" if operation == SET else None
    )
    altered = configs.AlterConfigsResource(resource_type=BROKER, resource_name=resource, configs=(change,))
    return configs.IncrementalAlterConfigsRequest(resources=(altered,), validate_only=False)
