"""Fleets of three brokers: Ottla, or Apache Kafka itself with --peer=kafka, which must pass what both can do."""

from collections.abc import Callable, Iterator

import pytest
from support.fixtures import make_fleet, name, small_disk
from support.fleet import FleetOf

__all__ = ["make_fleet", "name", "small_disk"]


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
