"""Fleets of three brokers: Ottla, or Apache Kafka itself with --peer=kafka, which must pass what both can do."""

from collections.abc import Callable, Iterator

import pytest
from support.fixtures import name, small_disk
from support.fleet import FleetOf

__all__ = ["name", "small_disk"]

# A module that needs other settings says so by a dict of this name.
SETTINGS_NAME = "FLEET_SETTINGS"


@pytest.fixture(scope="module")
def make_fleet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., FleetOf]]:
    """Makes fleets of the kind under test, not yet started; they end with the module. Keywords are FleetOf's."""
    made: list[FleetOf] = []

    def make(**options: object) -> FleetOf:
        options.setdefault("settings", getattr(request.module, SETTINGS_NAME, {}))
        folder = tmp_path_factory.mktemp("fleet")
        made.append(FleetOf(request.config.getoption("--peer"), folder, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()


@pytest.fixture(scope="module")
def fleet(make_fleet: Callable[..., FleetOf]) -> FleetOf:
    started = make_fleet()
    started.start()
    return started


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure shows the ends of the brokers' logs."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    fleet = getattr(item, "funcargs", {}).get("fleet")
    if report.failed and isinstance(fleet, FleetOf):
        report.sections.append(("ends of the brokers' logs", fleet.log_tails()))
