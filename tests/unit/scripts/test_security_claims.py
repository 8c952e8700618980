"""Each claim of docs/security.md names a test that there is."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
NAMED = re.compile(r"`([a-z0-9_/]+\.py)(?:::(test_\w+))?`")


def test_the_tests_that_it_names_exist() -> None:
    named = NAMED.findall((ROOT / "docs" / "security.md").read_text())
    assert len(named) > 20
    for path, name in named:
        if path.startswith("rpc/"):  # of the source
            continue
        file = ROOT / "tests" / path
        assert file.exists(), path
        assert not name or f"def {name}(" in file.read_text(), f"{path}::{name}"
