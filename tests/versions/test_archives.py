"""The archives are of the version that README.md names, and the data directories were written by its code."""

import json
import re

from support.versions import FOLDER, PREVIOUS, commit_of


def test_all_is_of_the_version_that_the_page_names() -> None:
    (named,) = re.findall(r"now ([0-9a-f]{7}),", (FOLDER / "README.md").read_text())
    commit = commit_of(PREVIOUS)
    assert commit[: len(named)] == named
    for variant in ("stopped", "killed"):
        assert json.loads((FOLDER / f"{variant}.json").read_text())["written by"] == commit


def test_together_they_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 1_000_000
