"""The data loop of one broker is held for ten seconds: asleep, or busy in Python.

Life signs do not hang on it: the quorum keeps its leader, also when that is the held node; others' partitions do not
notice; its own move within one session; nothing acknowledged is lost; and it comes back by itself.
"""

import http.client
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.pb import control_pb2 as pb
from ottla.pb.control_pb2_grpc import ControlStub
from support.fleet import FleetOf
from support.fleet_members import OttlaMember
from support.fleet_view import view_of
from support.history import Read, anomalies
from support.librdkafka import Sent, make_topic, read, send
from support.ottla_broker import OttlaBroker
from support.ports import free_port
from support.process import BrokerProcess
from support.steady import SteadyLibrdkafka
from support.waiting import eventually

HOLD_VARIABLE = "OTTLA_TEST_HOLD_DATA_LOOP_SECONDS"
HOLD_S = 10.0
HOLDS = {"asleep": signal.SIGUSR1, "busy": signal.SIGUSR2}
SESSION_S = 3.0
FLEET_SETTINGS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
# Beyond the session: the heartbeat after its end, the decision and its way to the others, on a busy machine.
NOTICE_S_MAX = 2.0
SILENCE_S_MAX = 1.5
RATE = 200
KEPT = [b"one", b"two"]


@pytest.fixture(scope="module")
def fleet(make_fleet: Callable[..., FleetOf]) -> Iterator[FleetOf]:
    made = make_fleet()
    if made.peer != "ottla":
        pytest.skip("holds a loop that only Ottla has")
    for member in made.members:
        member.settings["ottla.health.port"] = str(free_port())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOLD_VARIABLE, str(HOLD_S))
        made.start()
    yield made


def describe(fleet: FleetOf) -> pb.DescribeFleetReply | None:
    """As the quorum's leader sees it; None while nobody says that he leads."""
    for member in fleet.members:
        assert isinstance(member, OttlaMember)
        with grpc.insecure_channel(f"{member.host}:{member.seat.quorum_port}") as channel:
            try:
                return ControlStub(channel).DescribeFleet(pb.DescribeFleetRequest(), timeout=2)
            except grpc.RpcError:
                pass
    return None


def described(fleet: FleetOf) -> pb.DescribeFleetReply:
    found = eventually(lambda: describe(fleet), lambda seen: seen is not None)
    assert found is not None
    return found


def probe(broker: BrokerProcess, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", int(broker.settings["ottla.health.port"]), timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def topic_at(fleet: FleetOf, name: str, replicas: list[int]) -> str:
    """Of one partition, led by the first of the replicas."""
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    new = NewTopic(name, num_partitions=1, replica_assignment=[replicas], config={"min.insync.replicas": "2"})
    admin.create_topics([new])[name].result(30)
    eventually(lambda: fleet.partition(name, 0), lambda seen: seen is not None and seen.leader == replicas[0])
    return name


class QuorumWatch:
    """Asks again and again who leads the quorum, and since which epoch."""

    def __init__(self, fleet: FleetOf) -> None:
        self.seen: set[tuple[int, int]] = set()
        self.answers = 0
        self._fleet = fleet
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            if (reply := describe(self._fleet)) is not None:
                self.seen.add((reply.leader, reply.leader_epoch))
                self.answers += 1
            self._stop.wait(0.2)

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()


@pytest.mark.parametrize(("hold", "leads_quorum"), [("asleep", True), ("busy", True), ("busy", False)])
def test_a_held_data_loop_stops_nobody_else(fleet: FleetOf, name: str, hold: str, leads_quorum: bool) -> None:
    before = described(fleet)
    held = before.leader if leads_quorum else next(each for each in fleet.ids if each != before.leader)
    others = [each for each in fleet.ids if each != held]
    own_topic = topic_at(fleet, f"{name}-own", [held, *others])
    others_topic = topic_at(fleet, f"{name}-others", others)
    fleet.wait_in_sync()
    own = SteadyLibrdkafka(fleet.bootstrap, own_topic, partitions=1, rate=RATE)
    theirs = SteadyLibrdkafka(fleet.bootstrap, others_topic, partitions=1, rate=RATE)
    for producer in (own, theirs):
        producer.wait_for_progress(RATE, timeout_s=30)
        producer.silence.reset()
    watch = QuorumWatch(fleet)
    with watch.watching():
        moved_s = hold_and_watch(fleet, held, HOLDS[hold], own_topic)
        silence_s, own_silence_s = theirs.silence.longest_s, own.silence.longest_s
        fleet.wait_in_sync()
    print(f"{hold}: moved after {moved_s:.1f} s; silent: others {silence_s:.2f} s, own {own_silence_s:.2f} s")
    assert watch.seen == {(before.leader, before.leader_epoch)} and watch.answers > HOLD_S
    assert silence_s <= SILENCE_S_MAX
    assert not next(node for node in described(fleet).nodes if node.id == held).fenced
    for producer, topic in ((own, own_topic), (theirs, others_topic)):
        producer.wait_for_progress(RATE, timeout_s=60)
        sends = producer.finish()
        there = [Read(0, each.offset(), each.value()) for each in read(fleet.bootstrap, topic)]
        assert anomalies(sends, there) == []


def hold_and_watch(fleet: FleetOf, held: int, how: signal.Signals, topic: str) -> float:
    """Until the loop turns again. How long the partition took to move."""
    others = [fleet.members[each] for each in fleet.ids if each != held]
    begin = time.monotonic()
    os.kill(fleet.members[held].pid, how)

    def leaders() -> set[int]:
        views = [view_of(member, [topic]) for member in others]
        return {view.partitions[topic, 0].leader for view in views if view is not None}

    eventually(lambda: probe(fleet.members[held], "/readyz"), lambda seen: seen[0] == 503 and "data loop" in seen[1])
    assert time.monotonic() - begin <= NOTICE_S_MAX + SESSION_S
    assert probe(fleet.members[held], "/livez")[0] == 200
    eventually(leaders, lambda seen: seen and held not in seen, timeout_s=HOLD_S)
    moved_s = time.monotonic() - begin
    assert moved_s <= SESSION_S + NOTICE_S_MAX, f"moved after {moved_s:.1f} s"
    eventually(lambda: probe(fleet.members[held], "/readyz")[0], lambda seen: seen == 200, timeout_s=HOLD_S + 20)
    assert time.monotonic() - begin >= HOLD_S
    return moved_s


def test_a_held_broker_ends_when_it_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for ever, and what was acknowledged is there when it comes back."""
    broker = OttlaBroker(tmp_path)
    try:
        with monkeypatch.context() as patch:
            patch.setenv(HOLD_VARIABLE, "300")
            broker.start()
        make_topic(broker.bootstrap, "kept")
        send(broker.bootstrap, "kept", [Sent(value=value) for value in KEPT])
        os.kill(broker.pid, signal.SIGUSR2)
        eventually(lambda: view_of(broker), lambda seen: seen is None)
        assert broker.stop() == 1
        assert "without closing its logs" in broker.log_tail()
        broker.start()
        assert [each.value() for each in read(broker.bootstrap, "kept")] == KEPT
    finally:
        broker.close()
