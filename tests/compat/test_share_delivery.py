"""ShareFetch and ShareAcknowledge over a plain connection: locks, counts, sessions and refusals, as Kafka has them."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from golden.group_versions import wait_for_coordinator
from ottla.errors import Code
from support.librdkafka import Sent, make_topic, send
from support.process import BrokerProcess
from support.share_member import Member
from support.sharing import ONE_BROKER, Sharers, give_settings, turn_on
from support.waiting import eventually

BROKER_SETTINGS = {**ONE_BROKER, "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
GAP, ACCEPT, RELEASE, REJECT = range(4)
BATCH = 3
FINAL = -1


@pytest.fixture(scope="module")
def sharing(broker: BrokerProcess) -> BrokerProcess:
    wait_for_coordinator(broker.port)
    turn_on(broker.bootstrap)
    return broker


@pytest.fixture
def topic(sharing: BrokerProcess, name: str) -> str:
    """With four batches of three records, and a group of its name that begins with the first."""
    make_topic(sharing.bootstrap, name)
    give_settings(sharing.bootstrap, name, auto_offset_reset="earliest", record_lock_duration_ms="2000")
    for at in range(4):
        send(sharing.bootstrap, name, [Sent(f"accept-{at}-{number}".encode()) for number in range(BATCH)])
    return name


@pytest.fixture
def ana(sharing: BrokerProcess, topic: str) -> Iterator[Member]:
    member = Member(sharing, topic, topic)
    with member.connection:
        yield member


@pytest.fixture
def ben(sharing: BrokerProcess, topic: str) -> Iterator[Member]:
    member = Member(sharing, topic, topic)
    with member.connection:
        yield member


def test_whole_batches_each_for_one_member(ana: Member, ben: Member) -> None:
    assert ana.acquire(records=4, batch_size=1) == [(0, 2, 1), (3, 5, 1)]
    assert ben.acquire(records=4) == [(6, 11, 1)]
    assert ana.outcome((0, 2, (ACCEPT,)), (3, 5, (RELEASE, REJECT, ACCEPT))) is Code.none
    assert ben.acquire() == [(3, 3, 2)]


def test_locks_expire(ana: Member, ben: Member) -> None:
    assert ana.acquire() == [(0, 11, 1)]
    assert ben.acquire() == [(0, 11, 2)]
    assert ana.outcome((0, 11, (ACCEPT,))) is Code.invalid_record_state
    assert ben.outcome((0, 11, (ACCEPT,))) is Code.none


@pytest.mark.parametrize("how", ["last fetch", "last acknowledgement", "connection closed"])
def test_who_leaves_releases(ana: Member, ben: Member, how: str) -> None:
    assert ana.acquire() == [(0, 11, 1)]
    if how == "last fetch":
        ana.fetch(epoch=FINAL, acknowledge=((0, 1, (ACCEPT,)),))
    elif how == "last acknowledgement":
        ana.acknowledge((0, 1, (ACCEPT,)), epoch=FINAL)
    else:
        assert ana.outcome((0, 1, (ACCEPT,))) is Code.none
        ana.connection.socket.close()
    assert ben.counts() == dict.fromkeys(range(2, 12), 1), "which counts as not delivered"


def test_sessions(ana: Member) -> None:
    assert ana.fetch(0, epoch=1).error_code is Code.share_session_not_found
    assert ana.fetch(epoch=FINAL).error_code is Code.share_session_not_found
    assert ana.acknowledge((0, 0, (ACCEPT,)), epoch=3).error_code is Code.share_session_not_found
    assert ana.acknowledge((0, 0, (ACCEPT,)), epoch=0).error_code is Code.invalid_share_session_epoch
    assert ana.fetch(epoch=0, acknowledge=((0, 0, (ACCEPT,)),)).error_code is Code.invalid_request
    ana.acquire(records=1)
    assert ana.fetch(epoch=ana.epoch + 1).error_code is Code.invalid_share_session_epoch
    assert ana.acknowledge((0, 0, (ACCEPT,)), epoch=ana.epoch - 1).error_code is Code.invalid_share_session_epoch
    ana.epoch = 0
    assert ana.acquire(records=1) == [(3, 5, 1)], "a session that is opened again keeps what the last one holds"
    assert ana.outcome((0, 5, (ACCEPT,))) is Code.none
    ana.fetch(epoch=FINAL)
    assert ana.fetch().error_code is Code.share_session_not_found


def test_refused_acknowledgements(ana: Member, ben: Member) -> None:
    assert ana.acquire(records=1) == [(0, 2, 1)]
    assert ben.acquire(records=1) == [(3, 5, 1)]
    for spans, code in {
        ((0, 2, (4,)),): Code.invalid_request,
        ((0, 2, (-1,)),): Code.invalid_request,
        ((0, 2, ()),): Code.invalid_request,
        ((0, 2, (ACCEPT, ACCEPT)),): Code.invalid_request,
        ((2, 0, (ACCEPT,)),): Code.invalid_request,
        ((1, 2, (ACCEPT,)), (0, 0, (ACCEPT,))): Code.invalid_request,
        ((0, 99, (ACCEPT,)),): Code.invalid_request,
        ((3, 5, (ACCEPT,)),): Code.invalid_record_state,
        ((0, 5, (ACCEPT,)),): Code.invalid_record_state,
        ((0, 1, (ACCEPT,)), (4, 4, (ACCEPT,))): Code.invalid_record_state,
    }.items():
        assert ana.outcome(*spans) is code, spans
    assert ana.outcome((0, 2, (ACCEPT,)), index=5) is Code.unknown_topic_or_partition
    assert ana.outcome((0, 2, (ACCEPT, GAP, ACCEPT))) is Code.none, "nothing of all that was in force"
    assert ana.outcome((0, 2, (ACCEPT,))) is Code.none, "before the start: done"
    assert ben.outcome((4, 4, (ACCEPT,))) is Code.none
    assert ben.outcome((4, 4, (ACCEPT,))) is Code.invalid_record_state


def test_what_is_not_there(sharing: BrokerProcess, ana: Member) -> None:
    told = ana.fetch(7)
    assert told.responses[0].partitions[0].error_code is Code.unknown_topic_or_partition
    ana.epoch = 0
    told = ana.fetch(0, topic_id=uuid.UUID(int=77))
    if sharing.name != "kafka":  # which says nothing about it
        assert told.responses[0].partitions[0].error_code is Code.unknown_topic_id


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_transactions(sharing: BrokerProcess, name: str, tmp_path: Path, level: str) -> None:
    make_topic(sharing.bootstrap, name)
    give_settings(sharing.bootstrap, name, auto_offset_reset="earliest", isolation_level=level)
    producer = Producer({"bootstrap.servers": sharing.bootstrap, "transactional.id": name})
    producer.init_transactions()
    for at in range(6):
        producer.begin_transaction()
        for number in range(5):
            producer.produce(name, f"accept-{'aborted' if at % 2 else 'kept'}-{at}-{number}".encode())
        producer.flush()
        (producer.abort_transaction if at % 2 else producer.commit_transaction)()
    wanted = 15 if level == "read_committed" else 30
    with Sharers(tmp_path, sharing.bootstrap, group=name, topic=name, records_max=7) as sharers:
        send(sharing.bootstrap, name, [Sent(b"accept-last")])
        seen = eventually(sharers.acknowledged, lambda got: "accept-last" in got and len(got) > wanted)
        assert len(seen) == len(set(seen)) == wanted + 1
        assert any("aborted" in value for value in seen) is (level == "read_uncommitted")
