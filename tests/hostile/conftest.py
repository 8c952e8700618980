"""One attacker and one well-behaved neighbour at one broker: what every attack must leave as it was.

With --fleet the broker is one of three: the neighbour's topic has a replica on each and is led by the one attacked.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from support.fixtures import name
from support.fleet import FleetOf
from support.fleet_view import view_of
from support.neighbour import Neighbour
from support.ottla_broker import OttlaBroker
from support.process import BrokerProcess
from support.waiting import eventually

__all__ = ["name"]

GROWTH_BYTES_MAX = 64 << 20
KEPT_BYTES_MAX = 24 << 20  # what the allocator may keep in pieces; the next attack finds it there
SETTLED_SECONDS_MAX = 20.0
WATCH_SECONDS = 0.02
SETTINGS_NAME = "BROKER_SETTINGS"
FENCED = " is fenced: "  # as the quorum's leader logs it
FAILED = "Traceback"

Brokers = dict[int, BrokerProcess]  # by their ids
LedTopic = Callable[..., str]
Attack = Callable[..., AbstractContextManager[BrokerProcess]]


@pytest.fixture(scope="module")
def brokers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    settings = getattr(request.module, SETTINGS_NAME, {})
    if request.config.getoption("--fleet"):
        fleet = FleetOf("ottla", tmp_path_factory.mktemp("fleet"), settings=settings)
        made, start = dict(enumerate(fleet.members)), fleet.start
    else:
        alone = OttlaBroker(tmp_path_factory.mktemp("broker"), settings=settings)
        made, start = {1: alone}, alone.start
    try:
        start()
        yield made
        with ThreadPoolExecutor() as pool:
            codes = list(pool.map(BrokerProcess.stop, made.values()))
        assert set(codes) == {0}, "SIGTERM ends them, whatever happened before"
    finally:
        for broker in made.values():
            broker.close()


@pytest.fixture(scope="module")
def broker(brokers: Brokers) -> BrokerProcess:
    """The one that is attacked."""
    return next(iter(brokers.values()))


@pytest.fixture(scope="module")
def led_topic(brokers: Brokers) -> LedTopic:
    """Makes a topic of one partition with a replica on every broker, led by the one given."""

    def make(topic: str, leader: BrokerProcess) -> str:
        replicas = sorted(brokers, key=lambda number: brokers[number] is not leader)
        new = NewTopic(topic, num_partitions=1, replica_assignment=[replicas])
        admin = AdminClient({"bootstrap.servers": leader.bootstrap})
        admin.create_topics([new])[topic].result(30)
        for each in brokers.values():
            eventually(lambda each=each: standing(each, topic), lambda seen: seen == (replicas[0], set(replicas)))
        return topic

    return make


def standing(broker: BrokerProcess, topic: str) -> tuple[int, set[int]] | None:
    """Leader and replicas in sync, as this broker knows them."""
    view = view_of(broker, [topic])
    found = view and view.partitions.get((topic, 0))
    return (found.leader, set(found.in_sync)) if found else None


@pytest.fixture
def attack(brokers: Brokers, broker: BrokerProcess, led_topic: LedTopic, name: str) -> Attack:
    """`with attack() as broker:` measures the neighbour and the brokers' memory meanwhile, and judges both.

    `attack(another)` when another broker than the first one is attacked.
    """

    @contextmanager
    def run(attacked: BrokerProcess = broker) -> Iterator[BrokerProcess]:
        topic = led_topic(f"{name}-neighbour", attacked)
        neighbour = Neighbour(attacked.bootstrap, topic)
        fenced_before, standing_before = count_in_logs(brokers, FENCED), standing(attacked, topic)
        failed_before = count_in_logs(brokers, FAILED)
        peaks = [Peak(each) for each in brokers.values()]
        try:
            yield attacked
            seen = neighbour.finish()
        finally:
            neighbour.close()
            for peak in peaks:
                peak.stop()
        print(f"\n  neighbour: {seen.summary()}; memory {'; '.join(map(str, peaks))}")
        seen.check()
        assert count_in_logs(brokers, FENCED) == fenced_before, "a broker was fenced meanwhile"
        assert count_in_logs(brokers, FAILED) == failed_before, last_failure(brokers)
        assert standing(attacked, topic) == standing_before
        for peak in peaks:
            peak.check()

    return run


def count_in_logs(brokers: Brokers, what: str) -> int:
    return sum(each.log_path.read_text(errors="replace").count(what) for each in brokers.values())


def last_failure(brokers: Brokers) -> str:
    texts = [each.log_path.read_text(errors="replace") for each in brokers.values()]
    return "\n".join(text[text.rindex(FAILED) :][:3000] for text in texts if FAILED in text)


class Peak:
    """The largest resident size of a broker, looked at by a thread until `stop`."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._before = self._largest = broker.resident_bytes()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopping.wait(WATCH_SECONDS):
            self._largest = max(self._largest, self._broker.resident_bytes())

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def check(self) -> None:
        assert self._broker.running
        assert self._largest - self._before <= GROWTH_BYTES_MAX, str(self)
        assert self._settles(), f"{self}; {self._broker.resident_bytes() >> 20} MB remain"

    def _settles(self) -> bool:
        """Whether memory comes back."""
        deadline, below_bytes = time.monotonic() + SETTLED_SECONDS_MAX, self._before + KEPT_BYTES_MAX
        while (now_bytes := self._broker.resident_bytes()) > below_bytes and time.monotonic() < deadline:
            time.sleep(0.1)
        return now_bytes <= below_bytes

    def __str__(self) -> str:
        return f"{self._before >> 20} MB, largest {self._largest >> 20} MB"
