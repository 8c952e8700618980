"""One broker per test module: Ottla, or Apache Kafka itself with --peer=kafka, which must pass every test too.

With --fleet it is a fleet of three, for the tests that need no more than its address.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fixtures import name, small_disk
from support.fleet import FleetOf
from support.peers import PEERS
from support.process import BrokerProcess

__all__ = ["name", "small_disk"]

# A module that needs other settings says so by a dict of this name.
SETTINGS_NAME = "BROKER_SETTINGS"


@pytest.fixture(scope="module")
def make_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., BrokerProcess]]:
    """Makes brokers of the kind under test, not yet started; they end with the module."""
    made: list[BrokerProcess] = []

    def make(**settings: str) -> BrokerProcess:
        folder: Path = tmp_path_factory.mktemp("broker")
        made.append(PEERS[request.config.getoption("--peer")](folder, settings=settings))
        return made[-1]

    yield make
    for broker in made:
        broker.close()


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    if request.config.getoption("--fleet"):
        pytest.skip("is about one broker alone")
    started = make_broker(**getattr(request.module, SETTINGS_NAME, {}))
    started.start()
    return started


@pytest.fixture(scope="module")
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetOf]:
    settings = getattr(request.module, SETTINGS_NAME, {})
    kept = {key: value for key, value in settings.items() if key != "offsets.topic.replication.factor"}
    started = FleetOf(request.config.getoption("--peer"), tmp_path_factory.mktemp("fleet"), settings=kept)
    try:
        started.start()
        yield started
    finally:
        started.close()


@pytest.fixture(scope="module")
def bootstrap(request: pytest.FixtureRequest) -> str:
    address: str = request.getfixturevalue("fleet" if request.config.getoption("--fleet") else "broker").bootstrap
    return address


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure shows the end of the broker's log."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    broker = getattr(item, "funcargs", {}).get("broker")
    if report.failed and isinstance(broker, BrokerProcess):
        report.sections.append((f"end of {broker.name}'s log (running: {broker.running})", broker.log_tail()))
