"""Every test file is run by exactly one chapter of `make test-all`, and `make test` is a part of it."""

from collections import Counter
from pathlib import Path

import pytest

from scripts.test_all import ON_ONE_MACHINE, PYTEST, TIERS, Chapter

ROOT = Path(__file__).parents[3]
BY_HAND = "tests/long"


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def files_of(command: tuple[str, ...]) -> set[str]:
    """The test files that pytest would collect; a repetition against a fleet does not count."""
    if command[: len(PYTEST)] != PYTEST or "--fleet" in command:
        return set()
    paths = [Path(word) for word in command[len(PYTEST) :] if word.startswith("tests")]
    assert paths and all(path.exists() for path in paths), command
    found = {str(file) for path in paths for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
    return found - {word.removeprefix("--ignore=") for word in command if word.startswith("--ignore=")}


def test_every_file_is_in_exactly_one_place() -> None:
    runs = Counter(
        file for chapter in TIERS["test-all"].chapters for command in chapter.commands for file in files_of(command)
    )
    there = {str(file) for file in Path("tests").rglob("test_*.py") if not str(file).startswith(BY_HAND)}
    assert {file for file in there if runs[file] != 1} == set()
    assert set(runs) == there


def test_every_path_that_is_left_out_exists() -> None:
    words = [word for chapter in TIERS["test-all"].chapters for command in chapter.commands for word in command]
    ignored = [word.removeprefix("--ignore=") for word in words if word.startswith("--ignore=")]
    assert ignored and [path for path in ignored if not Path(path).exists()] == []


def test_the_short_tier_is_the_beginning_of_the_long_one() -> None:
    short, long = TIERS["test"], TIERS["test-all"]
    assert long.chapters[: len(short.chapters)] == short.chapters == ON_ONE_MACHINE
    assert not any("tests/cluster" in word for chapter in short.chapters for word in words_of(chapter))
    assert sum(chapter.budget_minutes for chapter in long.chapters) <= long.budget_minutes


def words_of(chapter: Chapter) -> list[str]:
    return [word for command in chapter.commands for word in command]
