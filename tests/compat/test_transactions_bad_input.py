"""Transactional requests that no good client sends: Kafka's codes, state unchanged, nothing hanging."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from kio.schema.add_offsets_to_txn.v3.request import AddOffsetsToTxnRequest
from kio.schema.add_offsets_to_txn.v3.response import AddOffsetsToTxnResponse
from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kio.schema.add_partitions_to_txn.v3.response import AddPartitionsToTxnResponse
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.describe_transactions.v0.response import DescribeTransactionsResponse
from kio.schema.end_txn.v3.request import EndTxnRequest
from kio.schema.end_txn.v3.response import EndTxnResponse
from kio.schema.end_txn.v5.request import EndTxnRequest as EndTxnRequestV5
from kio.schema.end_txn.v5.response import EndTxnResponse as EndTxnResponseV5
from kio.schema.errors import ErrorCode as Code
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.schema.init_producer_id.v4.response import InitProducerIdResponse
from kio.schema.produce.v9 import request as produce9
from kio.schema.produce.v9.response import ProduceResponse as ProduceResponseV9
from kio.schema.produce.v11 import request as produce11
from kio.schema.produce.v11.response import ProduceResponse as ProduceResponseV11
from kio.schema.txn_offset_commit.v5 import request as offsets5
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponse
from ottla.wire.records import Record, encode
from support.frames import Connection
from support.librdkafka import DEADLINE_S, make_topic, watermarks
from support.process import BrokerProcess
from support.transactions import producer, read_all, transact
from support.waiting import eventually

SOON = (Code.concurrent_transactions, Code.coordinator_load_in_progress, Code.not_coordinator)


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[Connection]:
    with Connection(broker.port) as opened:
        yield opened


def init(
    connection: Connection, name: str, *, timeout_s: float = 60.0, session: tuple[int, int] = (-1, -1)
) -> tuple[Code, int, int]:
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout=timedelta(seconds=timeout_s),
        producer_id=session[0],
        producer_epoch=session[1],
    )
    answer = connection.ask(request, InitProducerIdResponse)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def begun(connection: Connection, bootstrap: str, name: str) -> tuple[int, int]:
    """The id and epoch of a producer whose coordinator is ready."""
    producer(bootstrap, f"{name}-first")
    answer = eventually(lambda: init(connection, name), lambda one: one[0] is Code.none, timeout_s=DEADLINE_S)
    return answer[1], answer[2]


def add(connection: Connection, name: str, session: tuple[int, int], *places: tuple[str, int]) -> list[Code]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=session[0],
        v3_and_below_producer_epoch=session[1],
        v3_and_below_topics=tuple(AddPartitionsToTxnTopic(name=t, partitions=(index,)) for t, index in places),
    )
    answer = connection.ask(request, AddPartitionsToTxnResponse)
    lines = {topic.name: topic.results_by_partition for topic in answer.results_by_topic_v3_and_below}
    return [one.partition_error_code for t, _ in places for one in lines[t]]


def end(connection: Connection, name: str, session: tuple[int, int], *, commit: bool = True) -> Code:
    request = EndTxnRequest(transactional_id=name, producer_id=session[0], producer_epoch=session[1], committed=commit)
    return connection.ask(request, EndTxnResponse).error_code


def end_v5(connection: Connection, name: str, session: tuple[int, int], *, commit: bool) -> tuple[Code, int, int]:
    request = EndTxnRequestV5(
        transactional_id=name, producer_id=session[0], producer_epoch=session[1], committed=commit
    )
    answer = connection.ask(request, EndTxnResponseV5)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def write(
    connection: Connection,
    topic: str,
    name: str | None,
    session: tuple[int, int],
    *,
    sequence: int = 0,
    version: int = 9,
) -> Code:
    module, response = (produce9, ProduceResponseV9) if version == 9 else (produce11, ProduceResponseV11)
    records = encode([Record(0, 1_700_000_000_000, None, b"raw")], producer=(*session, sequence), is_transactional=True)
    data = module.PartitionProduceData(index=0, records=records)
    request = module.ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout=timedelta(seconds=10),
        topic_data=(module.TopicProduceData(name=topic, partition_data=(data,)),),
    )
    answer = connection.ask(request, response)
    return answer.responses[0].partition_responses[0].error_code


def commit_offset(connection: Connection, name: str, session: tuple[int, int], *, generation: int, member: str) -> Code:
    """For the group of this name, partition 0 of the topic of this name."""
    partition = offsets5.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
    )
    request = offsets5.TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=name,
        producer_id=session[0],
        producer_epoch=session[1],
        generation_id=generation,
        member_id=member,
        group_instance_id=None,
        topics=(offsets5.TxnOffsetCommitRequestTopic(name=name, partitions=(partition,)),),
    )
    return connection.ask(request, TxnOffsetCommitResponse).topics[0].partitions[0].error_code


def described(connection: Connection, name: str) -> tuple[str, list[str]]:
    """The state of a transactional id, and the topics in its transaction."""
    asked = connection.ask(DescribeTransactionsRequest(transactional_ids=(name,)), DescribeTransactionsResponse)
    (one,) = asked.transaction_states
    return one.transaction_state, [topic.topic for topic in one.topics]


def test_strangers(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    session = begun(connection, bootstrap, name)
    other, older, newer = (session[0] + 999, session[1]), (session[0], session[1] - 1), (session[0], session[1] + 1)
    unknown = f"{name}-unknown"
    assert add(connection, unknown, session, (name, 0)) == [Code.invalid_producer_id_mapping]
    assert add(connection, name, other, (name, 0)) == [Code.invalid_producer_id_mapping]
    assert add(connection, name, newer, (name, 0)) == [Code.producer_fenced]
    assert add(connection, "", session, (name, 0)) == [Code.invalid_request]
    assert end(connection, unknown, session) is Code.invalid_producer_id_mapping
    assert end(connection, name, session) is Code.invalid_txn_state
    assert end(connection, name, newer) is Code.producer_fenced
    assert end_v5(connection, name, session, commit=True)[0] is Code.invalid_txn_state
    assert end_v5(connection, name, older, commit=True)[0] is Code.producer_fenced
    asked = connection.ask(DescribeTransactionsRequest(transactional_ids=(unknown,)), DescribeTransactionsResponse)
    assert [one.error_code for one in asked.transaction_states] == [Code.transactional_id_not_found]


def test_initiation(connection: Connection, bootstrap: str, name: str) -> None:
    session = begun(connection, bootstrap, name)
    assert init(connection, name, timeout_s=900.001)[0] is Code.invalid_transaction_timeout
    assert init(connection, name, timeout_s=0)[0] is Code.invalid_transaction_timeout
    assert init(connection, "")[0] is Code.invalid_request
    assert init(connection, name, session=(session[0], -1))[0] is Code.invalid_request
    assert init(connection, name, session=(session[0] + 1, 0))[0] is Code.producer_fenced
    assert init(connection, name, session=session) == (Code.none, session[0], session[1] + 1)
    assert init(connection, name, session=session) == (Code.none, session[0], session[1] + 1), "the answer was lost"
    assert init(connection, name) == (Code.none, session[0], session[1] + 2)
    assert init(connection, name, session=session)[0] is Code.producer_fenced


def test_partitions_that_do_not_exist(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    session = begun(connection, bootstrap, name)
    missing = f"{name}-missing"
    codes = add(connection, name, session, (name, 0), (missing, 0))
    assert codes == [Code.operation_not_attempted, Code.unknown_topic_or_partition]
    assert end(connection, name, session) is Code.invalid_txn_state, "nothing was added"


def test_an_offset_of_no_group(connection: Connection, bootstrap: str, name: str) -> None:
    session = begun(connection, bootstrap, name)
    request = AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=session[0] + 999, producer_epoch=session[1], group_id=name
    )
    assert connection.ask(request, AddOffsetsToTxnResponse).error_code is Code.invalid_producer_id_mapping


def test_records_outside_a_transaction(connection: Connection, bootstrap: str, name: str) -> None:
    """A partition that was not added, an end that came before, an epoch that is over: nothing is written."""
    make_topic(bootstrap, name)
    session = begun(connection, bootstrap, name)
    assert write(connection, name, None, session) is Code.transactional_id_authorization_failed
    assert write(connection, name, name, session) is Code.invalid_txn_state
    assert write(connection, name, name, session, version=11) is Code.transaction_abortable
    assert write(connection, name, name, (session[0] + 999, 0)) is Code.invalid_producer_id_mapping
    assert watermarks(bootstrap, name) == (0, 0)
    assert add(connection, name, session, (name, 0)) == [Code.none]
    assert write(connection, name, name, session) is Code.none
    assert end(connection, name, session, commit=False) is Code.none
    eventually(lambda: watermarks(bootstrap, name)[1], lambda high: high == 2)
    assert write(connection, name, name, session, sequence=1) in (Code.invalid_txn_state, Code.not_enough_replicas)
    newer = eventually(lambda: init(connection, name), lambda one: one[0] is Code.none)
    assert write(connection, name, name, session, sequence=1) is Code.invalid_producer_epoch
    assert watermarks(bootstrap, name)[1] == 2
    assert newer[2] == session[1] + 1
    transact(producer(bootstrap, f"{name}-good"), name, ["good"])
    assert read_all(bootstrap, name) == ["good"]


def test_ends_that_are_sent_again(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    session = begun(connection, bootstrap, name)
    assert add(connection, name, session, (name, 0)) == [Code.none]
    following = (Code.none, session[0], session[1] + 1)
    assert end_v5(connection, name, session, commit=True) == following
    again = eventually(
        lambda: end_v5(connection, name, session, commit=True), lambda one: one[0] is not Code.concurrent_transactions
    )
    assert again == following
    assert end_v5(connection, name, session, commit=False)[0] is Code.invalid_txn_state
    assert add(connection, name, session, (name, 0)) == [Code.producer_fenced]


def test_offsets_of_a_stale_member(connection: Connection, bootstrap: str, name: str) -> None:
    """The member is refused after its transaction has begun, so that its client has something to abort.

    Aborts follow each other as fast as answers come: none is fenced because the markers of the last are on their way.
    """
    make_topic(bootstrap, name)
    session = begun(connection, bootstrap, name)
    wanted = FindCoordinatorRequest(key_type=0, coordinator_keys=(name,))
    eventually(
        lambda: connection.ask(wanted, FindCoordinatorResponse).coordinators[0].error_code, lambda one: one is Code.none
    )

    def refused() -> Code:
        return commit_offset(connection, name, session, generation=5, member="left")

    def aborted() -> tuple[Code, int, int]:
        return end_v5(connection, name, session, commit=False)

    for _ in range(20):
        code = eventually(refused, lambda one: one not in SOON)
        assert code is Code.illegal_generation
        assert described(connection, name) == ("Ongoing", ["__consumer_offsets"])
        code, *following = eventually(aborted, lambda one: one[0] is not Code.concurrent_transactions)
        assert (code, *following) == (Code.none, session[0], session[1] + 1)
        session = (following[0], following[1])


def test_an_end_while_the_last_one_is_under_way(connection: Connection, bootstrap: str, name: str) -> None:
    """The producer knows its next epoch before the markers are written, and may use it at once."""
    make_topic(bootstrap, name)
    session = begun(connection, bootstrap, name)

    def added() -> list[Code]:
        return add(connection, name, session, (name, 0))

    def aborted() -> tuple[Code, int, int]:
        return end_v5(connection, name, session, commit=False)

    for number in range(40):
        if number % 2 == 0:
            assert eventually(added, lambda one: one != [Code.concurrent_transactions]) == [Code.none]
        code, *following = eventually(aborted, lambda one: one[0] is not Code.concurrent_transactions)
        assert (code, *following) == (Code.none, session[0], session[1] + 1)
        session = (following[0], following[1])
