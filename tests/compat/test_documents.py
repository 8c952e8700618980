"""The code blocks of README and docs work as they stand, one after the other."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import Block, all_blocks

RUN = [block for block in all_blocks() if block.is_run_here]
PROMISED = re.compile(r"print\(.*\)  # (.+)$", flags=re.MULTILINE)
RUN_S_MAX = 60


@pytest.mark.parametrize("document", dict.fromkeys(block.document for block in RUN))
def test_the_blocks_of_a_document(document: str, bootstrap: str, tmp_path: Path) -> None:
    for block in RUN:
        if block.document == document:
            run(block, bootstrap, tmp_path)


def run(block: Block, bootstrap: str, folder: Path) -> None:
    """What a comment behind `print(…)` promises must be in the output."""
    text = block.text.replace("127.0.0.1:9092", bootstrap).replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    interpreter = [sys.executable] if block.language == "python" else ["bash", "-euo", "pipefail"]
    command = [*interpreter, "-c", text]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_S_MAX)
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    assert [line for line in PROMISED.findall(block.text) if line not in done.stdout.splitlines()] == [], done.stdout
