"""A fleet whose nodes talk over TLS: made so while it works, and back; and what its ports give to strangers."""

import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from ottla.security import pki
from support.client_listeners import OPEN, SAFE, TURNING, ClientListeners
from support.fleet import FleetOf
from support.fleet_certificates import Authority, put
from support.fleet_view import view_of
from support.history import Read, Send, anomalies
from support.librdkafka import make_topic, read
from support.ports import free_port
from support.steady import SteadyConsumer, SteadyLibrdkafka
from support.waiting import eventually

TOPIC, PARTITIONS, GROUP = "steady", 4, "readers"
PROGRESS_RECORDS, PROGRESS_S = 500, 60.0
RELOADED, PORTS = "gRPC goes on with a new certificate", 2
PLAINTEXT = {"ottla.grpc.protocol": "PLAINTEXT", "ottla.grpc.accept": "PLAINTEXT"}
BOTH = {"ottla.grpc.protocol": "PLAINTEXT", "ottla.grpc.accept": "PLAINTEXT,TLS"}
SPEAKS_TLS = {"ottla.grpc.protocol": "TLS", "ottla.grpc.accept": "PLAINTEXT,TLS"}
TLS = {"ottla.grpc.protocol": "TLS", "ottla.grpc.accept": "TLS"}


class Secured:
    """A fleet with the files that its nodes need for TLS, whether they use them or not."""

    def __init__(self, fleet: FleetOf, folder: Path, settings: dict[str, str]) -> None:
        self.fleet = fleet
        self.folder = folder
        self.authority = Authority(folder / "pki", fleet.members[0].settings["cluster.id"])
        self.alice = self.authority.issue("person", "alice")
        self.listeners = ClientListeners(fleet, folder / "listeners")
        self.stage = OPEN
        self.ca = folder / "ca.crt"
        put(self.authority.ca, self.ca)
        for index in fleet.ids:
            self.give(index, self.authority)
            fleet.members[index].settings |= {
                "ottla.grpc.ssl.keystore.location": str(self.keystore(index)),
                "ottla.grpc.ssl.truststore.location": str(self.ca),
                "ottla.health.port": str(free_port()),
                **settings,
            }

    def keystore(self, index: int) -> Path:
        return self.folder / f"node-{index}.pem"

    def give(self, index: int, authority: Authority) -> None:
        """A new certificate."""
        put(authority.issue("broker", str(index)).keystore, self.keystore(index))

    def shown(self, index: int) -> set[tuple[str, str]]:
        """Port and serial number of the certificates that a node tells of in its metrics."""
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.fleet.members[index].settings['ottla.health.port']}/metrics"
        ) as page:
            told = page.read().decode()
        return set(re.findall(r'ottla_certificate_info\{listener="([^"]+)",serial="([^"]+)"\} 1', told))

    def serial(self, index: int) -> str:
        (own, *_) = pki.describe(str(self.keystore(index)))
        return f"{own.serial:X}"

    def roll(self, settings: dict[str, str], clients: str = OPEN) -> None:
        """Every broker in turn, once all are in sync. `clients`: the stage of their listeners."""
        self.listeners.enter_by(SAFE if SAFE in (self.stage, clients) else OPEN)
        self.stage = clients
        for index, member in enumerate(self.fleet.members):
            self.fleet.wait_in_sync()
            assert member.stop() == 0
            member.settings |= settings | self.listeners.settings(index, clients)
            member.start()
        self.fleet.wait_in_sync()

    def command(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """`ottla fleet status` from a terminal."""
        port = self.fleet.members[0].settings["ottla.grpc.port"]
        command = [sys.executable, "-m", "ottla", "fleet", "status", "--nodes", f"127.0.0.1:{port}", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment or None)

    def as_alice(self) -> list[str]:
        return ["--cert", str(self.alice.keystore), "--ca", str(self.ca)]


@pytest.fixture
def secured(make_fleet: Callable[..., FleetOf], tmp_path: Path) -> Iterator[Callable[..., Secured]]:
    def make(settings: dict[str, str]) -> Secured:
        return Secured(make_fleet(), tmp_path, settings)

    yield make


def broker_log(fleet: FleetOf, index: int) -> str:
    return fleet.members[index].log_path.read_text()


def wait_for_reload(fleet: FleetOf, times: int) -> None:
    """Of every broker, on both of its ports."""

    def reloads() -> list[int]:
        return [broker_log(fleet, index).count(RELOADED) for index in fleet.ids]

    eventually(reloads, lambda seen: min(seen) >= times * PORTS)


def judge(fleet: FleetOf, *sends: Send) -> list[Read]:
    """Nothing lost, doubled or out of order."""
    found = [
        Read(index, one.offset(), one.value() or b"")
        for index in range(PARTITIONS)
        for one in read(fleet.bootstrap, TOPIC, index)
    ]
    assert not anomalies(sends, found)
    assert len(found) == len(sends)
    return found


class Load:
    """Two producers with acks=all and a member of a group, which move from one listener to another in turn. Producers
    see no error but those that they can retry, and nobody is refused."""

    def __init__(self, listeners: ClientListeners) -> None:
        self._listeners = listeners
        self._sends: list[Send] = []
        self._begun = 0
        self._producers = [self._produce(OPEN) for _ in range(2)]
        self._consumer = SteadyConsumer(TOPIC, GROUP, listeners.client("bob", OPEN))

    def _produce(self, stage: str) -> SteadyLibrdkafka:
        conf = self._listeners.client("alice", stage)
        self._begun += 1
        name = f"rd{self._begun}"
        return SteadyLibrdkafka(
            conf["bootstrap.servers"], TOPIC, partitions=PARTITIONS, rate=300, name=name, login=conf
        )

    def move(self, stage: str) -> None:
        for number, before in enumerate(self._producers):
            self._producers[number] = self._produce(stage)
            self._sends += self._end(before)
            self.go_on()
        self._consumer.move(self._listeners.client("bob", stage))
        self.go_on()

    def _end(self, producer: SteadyLibrdkafka) -> list[Send]:
        sends = producer.finish()
        assert not producer.refusals
        return sends

    def go_on(self) -> None:
        for each in self._producers:
            each.wait_for_progress(PROGRESS_RECORDS, timeout_s=PROGRESS_S)
        self._consumer.wait_for_progress(PROGRESS_RECORDS, timeout_s=PROGRESS_S)

    def judge(self, fleet: FleetOf) -> None:
        sends = self._sends + [send for each in self._producers for send in self._end(each)]
        written = {(one.partition, one.offset): one.value for one in judge(fleet, *sends)}
        eventually(lambda: len(self._consumer.reads), lambda seen: seen >= len(written), timeout_s=PROGRESS_S)
        self._consumer.stop()
        assert not self._consumer.errors
        assert self._consumer.reads == written


def check_closed(made: Secured) -> None:
    """Nobody gets in plainly, and whoever logs in sees what the ACLs let them see."""
    for member in made.fleet.members:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((member.host, member.port), 5)
    for index, member in enumerate(made.fleet.members):
        as_admin, member.entrance = member.entrance, partial(made.listeners.log_in, index, "alice")
        seen, member.entrance = view_of(member), as_admin
        assert seen is not None and {topic for topic, _ in seen.partitions} == {TOPIC}


def test_a_plain_fleet_is_made_secure_under_load_and_plain_again(secured: Callable[..., Secured]) -> None:
    """Its gRPC and its listeners for clients, in the same rolls."""
    made = secured(PLAINTEXT)
    fleet = made.fleet
    fleet.start()
    make_topic(fleet.bootstrap, TOPIC, partitions=PARTITIONS, replicas=3, min_insync_replicas="2")
    load = Load(made.listeners)
    stages = [
        (BOTH, TURNING),
        (SPEAKS_TLS, TURNING),
        (TLS, SAFE),
        (SPEAKS_TLS, TURNING),
        (BOTH, OPEN),
        (PLAINTEXT, OPEN),
    ]
    for number, (settings, clients) in enumerate(stages):
        made.roll(settings, clients)
        load.go_on()
        by_tls, plainly = made.command(*made.as_alice()), made.command()
        assert (by_tls.returncode == 0) == ("TLS" in settings["ottla.grpc.accept"]), by_tls.stderr
        assert (plainly.returncode == 0) == ("PLAINTEXT" in settings["ottla.grpc.accept"]), plainly.stderr
        if number == 0:
            made.listeners.admit(TOPIC, GROUP)
            load.move(SAFE)
        if settings == TLS:
            assert "takes TLS only; give --cert (or OTTLA_CERT)" in plainly.stderr
            check_closed(made)
        if number == 3:
            load.move(OPEN)
        if settings == PLAINTEXT:
            assert "takes plaintext only; leave --cert, --key and --ca out" in by_tls.stderr
    load.judge(fleet)


def test_certificates_and_the_ca_change_under_load(secured: Callable[..., Secured], tmp_path: Path) -> None:
    """Both CAs are trusted first, then the new one issues, then the old one goes: no broker is restarted, and none
    loses sight of another."""
    made = secured(TLS)
    fleet = made.fleet
    fleet.start()
    make_topic(fleet.bootstrap, TOPIC, partitions=PARTITIONS, replicas=3, min_insync_replicas="2")
    producer = SteadyLibrdkafka(fleet.bootstrap, TOPIC, partitions=PARTITIONS, rate=500)
    producer.wait_for_progress(PROGRESS_RECORDS, timeout_s=PROGRESS_S)
    following = Authority(tmp_path / "following", fleet.members[0].settings["cluster.id"])
    both = tmp_path / "both.crt"
    both.write_bytes(made.authority.ca.read_bytes() + following.ca.read_bytes())
    before = [len(broker_log(fleet, index)) for index in fleet.ids]
    put(both, made.ca)
    wait_for_reload(fleet, 1)
    for index in fleet.ids:
        made.give(index, following)
    wait_for_reload(fleet, 2)
    put(following.ca, made.ca)
    wait_for_reload(fleet, 3)
    producer.wait_for_progress(PROGRESS_RECORDS, timeout_s=PROGRESS_S)
    for index in fleet.ids:
        assert made.shown(index) == {(port, made.serial(index)) for port in ("gRPC", "gRPC replication")}
    assert made.command(*made.as_alice()).returncode != 0, "the old CA is trusted no more"
    made.alice = following.issue("person", "alice")
    assert made.command(*made.as_alice()).returncode == 0
    for index in fleet.ids:
        lines = broker_log(fleet, index)[before[index] :].splitlines()
        unexpected = [line for line in lines if RELOADED not in line]
        assert not unexpected, f"broker {index}"
    judge(fleet, *producer.finish())
