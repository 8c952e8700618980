"""One attacker, one well-behaved neighbour, one broker: what every attack must leave as it was."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from support.fixtures import name
from support.neighbour import Neighbour
from support.ottla_broker import OttlaBroker
from support.process import BrokerProcess

__all__ = ["name"]

GROWTH_BYTES_MAX = 64 << 20
KEPT_BYTES_MAX = 16 << 20
SETTLED_SECONDS_MAX = 20.0
SETTINGS_NAME = "BROKER_SETTINGS"

Attack = Callable[[], AbstractContextManager[BrokerProcess]]


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = getattr(request.module, SETTINGS_NAME, {})
    started = OttlaBroker(tmp_path_factory.mktemp("broker"), settings=settings)
    try:
        started.start()
        yield started
        assert started.stop() == 0, "SIGTERM ends it, whatever happened before"
    finally:
        started.close()


@pytest.fixture
def attack(broker: BrokerProcess, name: str) -> Attack:
    """`with attack() as broker:` measures the neighbour and the broker's memory meanwhile, and judges both."""

    @contextmanager
    def run() -> Iterator[BrokerProcess]:
        neighbour = Neighbour(broker.bootstrap, f"{name}-neighbour")
        before = broker.resident_bytes()
        peak = Peak(broker)
        try:
            yield broker
            seen = neighbour.finish()
        finally:
            neighbour.close()
            largest = peak.stop()
        print(f"\n  neighbour: {seen.summary()}; memory {before >> 20} MB, largest {largest >> 20} MB")
        seen.check()
        assert broker.running
        assert largest - before <= GROWTH_BYTES_MAX, f"{before >> 20} MB became {largest >> 20} MB"
        assert settled(broker, below_bytes=before + KEPT_BYTES_MAX), f"{broker.resident_bytes() >> 20} MB remain"

    return run


class Peak:
    """The largest resident size, looked at by a thread."""

    def __init__(self, broker: BrokerProcess) -> None:
        import threading

        self._broker = broker
        self._largest = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopping.wait(0.02):
            self._largest = max(self._largest, self._broker.resident_bytes())

    def stop(self) -> int:
        self._stopping.set()
        self._thread.join()
        return self._largest


def settled(broker: BrokerProcess, *, below_bytes: int) -> bool:
    """Whether memory comes back."""
    deadline = time.monotonic() + SETTLED_SECONDS_MAX
    while broker.resident_bytes() > below_bytes and time.monotonic() < deadline:
        time.sleep(0.1)
    return broker.resident_bytes() <= below_bytes
