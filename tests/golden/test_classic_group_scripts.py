from pathlib import Path

import pytest
from golden.classic_group_scripts import FOLDER, play

SCRIPTS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_script(path: Path) -> None:
    expected = path.read_text()
    assert play(expected) == expected, "python tests/golden/classic_group_scripts.py --rewrite shows the difference"


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 10
