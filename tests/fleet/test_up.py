"""`ottla up` as `make up` runs it: brokers, sample, table; Ctrl-C stops all. Ottla only."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
from fleet.test_cli import port_with_room
from support.waiting import eventually

UP_S_MAX = 600.0


@contextlib.contextmanager
def started(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """`ottla up`, and the file that has what it says."""
    output = folder / "up.log"
    words = ["up", "--port", str(port_with_room()), "--data-dir", str(folder / "data"), "--events", "1000"]
    with open(output, "wb") as log:
        up = subprocess.Popen([sys.executable, "-m", "ottla", *words], stdout=log, stderr=log, cwd=folder)
    try:
        yield up, output
    finally:
        if up.poll() is None:
            up.kill()


def group_of_the_table(output: str) -> str:
    """Who read the sessions, as `ottla groups` tells it."""
    bootstrap = re.search(r"bootstrap (\S+);", output)
    assert bootstrap is not None, output
    words = ["groups", "describe", "sessions-table", "--bootstrap", bootstrap[1].split(",")[0]]
    told = subprocess.run([sys.executable, "-m", "ottla", *words], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_up_prints_the_table_and_ctrl_c_stops_everything(tmp_path: Path) -> None:
    with started(tmp_path) as (up, output):
        seen = eventually(output.read_text, lambda text: "stay up" in text or up.poll() is not None, timeout_s=UP_S_MAX)
        assert "sessions are as they should be" in seen, seen
        assert "rack b" in seen and "user-1" in seen
        children = psutil.Process(up.pid).children(recursive=True)
        assert len(children) >= 3, "the brokers run on"
        assert "sessions-table: Empty" in (told := group_of_the_table(seen)) and "lag 0" in told, told
        up.send_signal(signal.SIGINT)
        assert up.wait(60) == 0, output.read_text()
        assert not [child for child in children if child.is_running()]
        assert output.read_text().count("stopped") == 3


def test_ctrl_c_while_spark_runs_stops_it_too(tmp_path: Path) -> None:
    with started(tmp_path) as (up, output):
        eventually(output.read_text, lambda text: "Spark 4" in text or up.poll() is not None, timeout_s=UP_S_MAX)
        children = psutil.Process(up.pid).children(recursive=True)
        assert any(child.name() == "java" for child in children)
        up.send_signal(signal.SIGINT)
        assert up.wait(90) == 0, output.read_text()
        assert not [child for child in children if child.is_running()], output.read_text()


def test_java_missing_is_told_in_one_line(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    words = [sys.executable, "-m", "ottla", "up", "--data-dir", str(tmp_path / "data")]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert done.stderr == (
        "ottla up: Spark needs Java 17 or newer; install it (Debian: sudo apt-get install openjdk-17-jre-headless)\n"
    )
    assert not (tmp_path / "data").exists()
