"""The encoders made by hand against the ones made from the schema, in every version."""

from random import Random

import pytest
from ottla.wire import fetch_response, metadata_response, produce_response
from ottla.wire.fetch_response import Fetched
from ottla.wire.metadata_response import BrokerEndpoint, MetadataHead, PartitionLine
from ottla.wire.produce_response import Outcome
from ottla.wire.schema import response_struct
from ottla.wire.writer import writer_of

ID = bytes(range(16))


def by_schema(key: int, version: int, **values: object) -> bytes:
    parts: list[bytes] = []
    writer_of(response_struct(key, version))(parts, values)
    return b"".join(parts)


def joined(parts: list[object]) -> bytes:
    return b"".join(map(bytes, parts))  # type: ignore[call-overload]


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("failed", [False, True])
def test_produce(version: int, failed: bool) -> None:
    outcome = Outcome(3, base_offset=7, log_append_time=9, log_start_offset=2)
    if failed:
        outcome = Outcome(
            3,
            error_code=6,
            message="no ß",
            record_errors=[(0, "bad"), (4, None)],
            leader=(2, 5) if version >= 10 else None,
        )
    endpoints = [(2, "host", 9092, None)] if failed and version >= 10 else []
    line = {
        "index": 3,
        "error_code": outcome.error_code,
        "base_offset": outcome.base_offset,
        "log_append_time": outcome.log_append_time,
        "log_start_offset": outcome.log_start_offset,
        "record_errors": [
            {"batch_index": index, "batch_index_error_message": text} for index, text in outcome.record_errors
        ],
        "error_message": outcome.message,
    }
    if outcome.leader:
        line["current_leader"] = {"leader_id": 2, "leader_epoch": 5}
    topic = {"name": "t", "topic_id": ID, "partition_responses": [line, line]}
    expected = by_schema(
        0,
        version,
        responses=[topic],
        node_endpoints=[{"node_id": n, "host": h, "port": p, "rack": r} for n, h, p, r in endpoints] or (),
    )
    name = ID if version >= 13 else "t"
    assert joined(produce_response.encode(version, [(name, [outcome, outcome])], endpoints)) == expected


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch(version: int) -> None:
    random = Random(version)
    answers = [
        Fetched(0, 0, 10, 9, 1, records=random.randbytes(300)),
        Fetched(1, 1, aborted=[(5, 6), (7, 8)], preferred_read_replica=2 if version >= 11 else -1),
        Fetched(2, 0, 10, 9, 1, aborted=[]),
    ]
    if version >= 12:
        answers.append(Fetched(4, 6, diverging=(3, 44), leader=(1, 2)))
    lines = [
        {
            "partition_index": a.index,
            "error_code": a.error_code,
            "high_watermark": a.high_watermark,
            "last_stable_offset": a.last_stable_offset,
            "log_start_offset": a.log_start_offset,
            "aborted_transactions": a.aborted
            if a.aborted is None
            else [{"producer_id": p, "first_offset": f} for p, f in a.aborted],
            "preferred_read_replica": a.preferred_read_replica,
            "records": bytes(a.records),
            **({"diverging_epoch": {"epoch": 3, "end_offset": 44}} if a.diverging else {}),
            **({"current_leader": {"leader_id": 1, "leader_epoch": 2}} if a.leader else {}),
        }
        for a in answers
    ]
    expected = by_schema(
        1, version, session_id=77, responses=[{"topic": "t", "topic_id": ID, "partitions": lines}], error_code=0
    )
    name = ID if version >= 13 else "t"
    made = fetch_response.encode(version, error_code=0, session_id=77, topics=[(name, answers)])
    assert joined(made) == expected


@pytest.mark.parametrize("version", range(14))
def test_metadata(version: int) -> None:
    lines = [PartitionLine(0, 0, 1, 4, [1, 2], [1], [2]), PartitionLine(5, 1, -1, 4, [2], [], [2])]
    brokers = [BrokerEndpoint(1, "ä.example", 9092, "a"), BrokerEndpoint(2, "b", 9093, None)]
    partitions = metadata_response.encode_partitions(version, lines)
    topic = metadata_response.encode_topic(
        version, error_code=0, name="t", topic_id=ID, internal=True, partitions=partitions
    )
    made = metadata_response.response(version, MetadataHead(brokers, "cluster", 1), [topic, topic])
    described = {
        "error_code": 0,
        "name": "t",
        "topic_id": ID,
        "is_internal": True,
        "partitions": [
            {
                "error_code": line.error_code,
                "partition_index": line.index,
                "leader_id": line.leader,
                "leader_epoch": line.leader_epoch,
                "replica_nodes": line.replicas,
                "isr_nodes": line.isr,
                "offline_replicas": line.offline,
            }
            for line in lines
        ],
    }
    expected = by_schema(
        3,
        version,
        brokers=[{"node_id": b.id, "host": b.host, "port": b.port, "rack": b.rack} for b in brokers],
        cluster_id="cluster",
        controller_id=1,
        topics=[described, described],
    )
    assert joined(made) == expected
