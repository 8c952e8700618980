"""A transaction that hangs: open in a partition's log, and unknown to every coordinator.

Such were left behind by delayed batches before KIP-890; with verification switched off they still can be.
"""

import re
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode as Code
from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.schema.init_producer_id.v4.response import InitProducerIdResponse
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from ottla.wire.records import Record, encode
from support.frames import Connection
from support.java import java_tool
from support.librdkafka import make_topic, watermarks
from support.process import BrokerProcess
from support.transactions import producer, read_all, transact
from support.waiting import eventually

BROKER_SETTINGS = {"transaction.partition.verification.enable": "false"}
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
# Long past: the tool looks only at what is older than transactions may become.
TIMESTAMP_MS = 1_700_000_000_000


def tool(bootstrap: str, *arguments: str) -> str:
    return java_tool(TRANSACTIONS, "--bootstrap-server", bootstrap, *arguments).out


def unknown_producer(connection: Connection) -> tuple[int, int]:
    """An id that is given out, and belongs to no transactional id."""
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout=timedelta(0), producer_id=-1, producer_epoch=-1
    )
    answer = eventually(
        lambda: connection.ask(request, InitProducerIdResponse), lambda seen: seen.error_code is Code.none
    )
    return answer.producer_id, answer.producer_epoch


def leave_hanging(connection: Connection, topic: str) -> int:
    """The producer id of a transaction that nobody will end."""
    session = unknown_producer(connection)
    records = encode([Record(0, TIMESTAMP_MS, None, b"hanging")], producer=(*session, 0), is_transactional=True)
    request = ProduceRequest(
        transactional_id=f"{topic}-lost",
        acks=-1,
        timeout=timedelta(seconds=10),
        topic_data=(TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),)),),
    )
    answer = connection.ask(request, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code is Code.none
    return session[0]


@pytest.fixture
def hanging(broker: BrokerProcess, name: str) -> int:
    make_topic(broker.bootstrap, name)
    transact(producer(broker.bootstrap, f"{name}-before"), name, ["before"])
    eventually(lambda: stable_end(broker.bootstrap, name), lambda end: end == 2)  # its marker may come later
    with Connection(broker.port) as connection:
        return leave_hanging(connection, name)


def stable_end(bootstrap: str, topic: str) -> int:
    return watermarks(bootstrap, topic, isolation_level="read_committed")[1]


@pytest.mark.parametrize("search", [("--broker-id", "1"), ("--topic", None)], ids=["broker", "topic"])
def test_it_is_found_and_aborted(bootstrap: str, name: str, hanging: int, search: tuple[str, str | None]) -> None:
    transact(producer(bootstrap, f"{name}-behind"), name, ["behind"])
    assert read_all(bootstrap, name) == ["before"] and stable_end(bootstrap, name) == 2

    def found() -> str:
        return tool(bootstrap, "find-hanging", search[0], search[1] or name, "--max-transaction-timeout", "15")

    row = rf"^{re.escape(name)}\s+0\s+{hanging}\s+0\s+-1\s+2\s+{TIMESTAMP_MS}\s+\d+\s*$"
    assert re.search(row, listed := found(), re.M), listed
    described = tool(bootstrap, "describe-producers", "--topic", name, "--partition", "0")
    assert re.search(rf"^{hanging}\s+0\s+-1\s+0\s+{TIMESTAMP_MS}\s+2\s*$", described, re.M), described
    tool(bootstrap, "abort", "--topic", name, "--partition", "0", "--start-offset", "2")
    eventually(lambda: stable_end(bootstrap, name), lambda end: end == 6)
    assert read_all(bootstrap, name) == ["before", "behind"]
    assert name not in found()


def test_a_start_offset_where_nothing_begins(bootstrap: str, name: str, hanging: int) -> None:
    answer = java_tool(
        TRANSACTIONS,
        *("--bootstrap-server", bootstrap, "abort", "--topic", name, "--partition", "0", "--start-offset", "1"),
        code=None,
    )
    assert answer.code != 0 and "Could not find any open transactions starting at offset 1" in answer.text
    assert stable_end(bootstrap, name) == 2, "it hangs as before"
