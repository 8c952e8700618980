from pathlib import Path

import pytest
from golden.scripts import KINDS, play, scripts_of

SCRIPTS = [(kind, path) for kind in KINDS for path in scripts_of(kind)]


@pytest.mark.parametrize(("kind", "path"), SCRIPTS, ids=[f"{kind}-{path.stem}" for kind, path in SCRIPTS])
def test_script(kind: str, path: Path) -> None:
    expected = path.read_text()
    assert play(KINDS[kind](), expected) == expected, "python -m golden.scripts --rewrite shows the difference"


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_scripts(kind: str) -> None:
    assert len(scripts_of(kind)) >= 8
