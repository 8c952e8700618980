"""Fixtures of several chapters; a chapter's conftest.py names those that it uses."""

import itertools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fleet import FleetOf

__all__ = ["make_fleet", "name", "small_disk"]

# A module whose fleets need other settings says so by a dict of this name.
FLEET_SETTINGS_NAME = "FLEET_SETTINGS"

_numbers = itertools.count(1)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    readable = "".join(c if c.isalnum() else "-" for c in request.node.name).strip("-")
    return f"{readable[:60]}-{next(_numbers)}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def make_fleet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., FleetOf]]:
    """Makes fleets of the kind under test, not yet started; they end with the module. Keywords are FleetOf's."""
    made: list[FleetOf] = []

    def make(**options: object) -> FleetOf:
        options.setdefault("settings", getattr(request.module, FLEET_SETTINGS_NAME, {}))
        folder = tmp_path_factory.mktemp("fleet")
        made.append(FleetOf(request.config.getoption("--peer"), folder, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()
