"""One broker per test module: Ottla, or Apache Kafka itself with --peer=kafka, which must pass every test too."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fixtures import name, small_disk
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
    started = make_broker(**getattr(request.module, SETTINGS_NAME, {}))
    started.start()
    return started


@pytest.fixture(scope="module")
def bootstrap(broker: BrokerProcess) -> str:
    return broker.bootstrap


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure shows the end of the broker's log."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    broker = getattr(item, "funcargs", {}).get("broker")
    if report.failed and isinstance(broker, BrokerProcess):
        report.sections.append((f"end of {broker.name}'s log (running: {broker.running})", broker.log_tail()))
