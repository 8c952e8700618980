"""Fixtures of several chapters; a chapter's conftest.py names those that it uses."""

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["name", "small_disk"]

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
