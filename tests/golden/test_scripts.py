from pathlib import Path

import pytest
from golden.scripts import KINDS, play, scripts_of

SCRIPTS = [(kind, path) for kind in KINDS for path in scripts_of(kind)]


@pytest.mark.parametrize(("kind", "path"), SCRIPTS, ids=[f"{kind}-{path.stem}" for kind, path in SCRIPTS])
def test_script(kind: str, path: Path) -> None:
    expected = path.read_text()
    assert play(KINDS[kind](), expected) == expected, "python -m golden.scripts --rewrite shows the difference"


def test_there_are_scripts() -> None:
    counts = {kind: len(scripts_of(kind)) for kind in KINDS}
    assert counts["classic_groups"] >= 10 and counts["raft"] >= 8 and counts["transactions"] >= 8
