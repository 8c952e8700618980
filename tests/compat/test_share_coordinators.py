"""Who keeps the state of a share-partition: FindCoordinator of type 2, and the topic that it makes."""

from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from support.frames import Connection
from support.java import java_tool
from support.process import BrokerProcess
from support.waiting import eventually

BROKER_SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
TOOLS = "org.apache.kafka.tools"
SHARE, KEY = 2, "readers:4vTJHjQzRxGFvlyDC6QmrA:7"
INVALID_REQUEST = 42


def find(broker: BrokerProcess, *keys: str, version: int = 6) -> list[Any]:
    request, response = load_request_schema(10, version), load_response_schema(10, version)
    with Connection(broker.port) as connection:
        return list(connection.ask(request(key_type=SHARE, coordinator_keys=keys), response).coordinators)


@pytest.fixture(scope="module")
def sharing(broker: BrokerProcess) -> BrokerProcess:
    feature = ("upgrade", "--feature", "share.version=1")
    java_tool(f"{TOOLS}.FeatureCommand", "--bootstrap-server", broker.bootstrap, *feature)
    return broker


def test_found_when_the_topic_is_made(sharing: BrokerProcess) -> None:
    found = eventually(lambda: [one for one in find(sharing, KEY) if one.error_code == 0], bool)
    assert [(one.key, one.node_id, one.port) for one in found] == [(KEY, 1, sharing.port)]
    topic = ("--describe", "--topic", "__share_group_state")
    shown = java_tool(f"{TOOLS}.TopicCommand", "--bootstrap-server", sharing.bootstrap, *topic).out
    for part in ("PartitionCount: 3", "cleanup.policy=delete", "retention.ms=-1", "segment.bytes=104857600"):
        assert part in shown


def test_what_is_no_share_partition(sharing: BrokerProcess) -> None:
    keys = ["", "readers", "readers:4vTJHjQzRxGFvlyDC6QmrA", "readers:x:0", "readers:4vTJHjQzRxGFvlyDC6QmrA:x"]
    assert [one.error_code for one in find(sharing, *keys)] == [INVALID_REQUEST] * len(keys)
    assert [one.error_code for one in find(sharing, KEY, version=5)] == [INVALID_REQUEST]
