"""The code of the broker that landed last."""

from pathlib import Path

import pytest
from support.fixtures import make_fleet
from support.versions import PREVIOUS, unpack

__all__ = ["make_fleet", "previous_code"]


@pytest.fixture(scope="session")
def previous_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PREVIOUS, tmp_path_factory.mktemp("previous"))
