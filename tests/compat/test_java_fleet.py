"""kafka-broker-api-versions, kafka-metadata-quorum, kafka-features and kafka-cluster, unmodified."""

import json
import re

from support.java import java_tool
from support.process import BrokerProcess

# The APIs of a broker without groups, transactions and security, with Kafka 4.1's version ranges.
VERSIONS = {
    "Produce(0)": "0 to 13",
    "Fetch(1)": "4 to 18",
    "ListOffsets(2)": "1 to 10",
    "Metadata(3)": "0 to 13",
    "ApiVersions(18)": "0 to 4",
    "CreateTopics(19)": "2 to 7",
    "DeleteTopics(20)": "1 to 6",
    "DeleteRecords(21)": "0 to 2",
    "InitProducerId(22)": "0 to 5",
    "OffsetForLeaderEpoch(23)": "2 to 4",
    "DescribeConfigs(32)": "1 to 4",
    "AlterConfigs(33)": "0 to 2",
    "DescribeLogDirs(35)": "1 to 4",
    "CreatePartitions(37)": "0 to 3",
    "ElectLeaders(43)": "0 to 2",
    "IncrementalAlterConfigs(44)": "0 to 1",
    "AlterPartitionReassignments(45)": "0 to 1",
    "ListPartitionReassignments(46)": "0",
    "DescribeClientQuotas(48)": "0 to 1",
    "AlterClientQuotas(49)": "0 to 1",
    "DescribeQuorum(55)": "0 to 2",
    "UpdateFeatures(57)": "0 to 2",
    "DescribeCluster(60)": "0 to 2",
    "DescribeProducers(61)": "0",
    "UnregisterBroker(64)": "0",
    "ConsumerGroupHeartbeat(68)": "0 to 1",
    "ConsumerGroupDescribe(69)": "0 to 1",
    "ListConfigResources(74)": "0 to 1",
    "DescribeTopicPartitions(75)": "0",
    "ShareGroupHeartbeat(76)": "1",
    "ShareGroupDescribe(77)": "1",
    "ShareFetch(78)": "1",
    "ShareAcknowledge(79)": "1",
    "AddRaftVoter(80)": "0",
    "RemoveRaftVoter(81)": "0",
    "DescribeShareGroupOffsets(90)": "0",
    "AlterShareGroupOffsets(91)": "0",
    "DeleteShareGroupOffsets(92)": "0",
}
TOOLS = "org.apache.kafka.tools"


def test_api_versions(broker: BrokerProcess) -> None:
    shown = java_tool(f"{TOOLS}.BrokerApiVersionsCommand", "--bootstrap-server", broker.bootstrap)
    assert shown.lines[0] == f"{broker.bootstrap} (id: 1 rack: null isFenced: false) -> ("
    ranges = dict(re.findall(r"(\w+\(\d+\)): ([\d to]+) \[usable: \d+\]", shown.out))
    assert {api: ranges.get(api) for api in VERSIONS} == VERSIONS


def test_quorum(bootstrap: str) -> None:
    quorum = (f"{TOOLS}.MetadataQuorumCommand", "--bootstrap-server", bootstrap, "describe")
    status = dict(line.split(":", 1) for line in java_tool(*quorum, "--status").lines)
    status = {key: value.strip() for key, value in status.items()}
    assert re.fullmatch(r"[\w-]{22}", status["ClusterId"])
    assert (status["LeaderId"], status["MaxFollowerLag"], status["MaxFollowerLagTimeMs"]) == ("1", "0", "0")
    assert int(status["LeaderEpoch"]) >= 1 and int(status["HighWatermark"]) >= 1
    (voter,) = json.loads(status["CurrentVoters"])
    assert voter["id"] == 1
    assert status["CurrentObservers"] == "[]"

    head, *rows = java_tool(*quorum, "--replication").lines
    assert head.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert head.split()[4:] == ["LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"]
    (leader,) = [row.split() for row in rows]
    assert (leader[0], leader[3], leader[-1]) == ("1", "0", "Leader")
    assert re.fullmatch(r"[\w-]{22}", leader[1])


def test_features(bootstrap: str) -> None:
    shown = java_tool(f"{TOOLS}.FeatureCommand", "--bootstrap-server", bootstrap, "describe")
    features = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)\s+Epoch: \d+", shown.out))
    assert features["metadata.version"].startswith("4.1")
    assert "transaction.version" in features and "group.version" in features
    assert features["share.version"] == "0", "a preview: off until it is turned on"


def test_cluster_tool(bootstrap: str) -> None:
    shown = java_tool(f"{TOOLS}.ClusterTool", "cluster-id", "--bootstrap-server", bootstrap)
    assert re.fullmatch(r"Cluster ID: [\w-]{22}", shown.lines[0])
    head, row = java_tool(f"{TOOLS}.ClusterTool", "list-endpoints", "--bootstrap-server", bootstrap).lines
    host, port = bootstrap.split(":")
    assert head.split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert row.split() == ["1", host, port, "null", "unfenced", "broker"]
