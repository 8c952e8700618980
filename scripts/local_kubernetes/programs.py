"""Long-running programs of the cluster: started in the background, remembered by id, ended by id.

A pid file holds the id and the time of start, so that a number that the system gave to somebody else since is left
alone.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

from scripts.local_kubernetes.places import state_folder

END_TIMEOUT_S = 10.0
LOG_TAIL_LINES = 15
SAME_START_S = 1.0


class ProgramFailed(RuntimeError):
    """A program ended or did not get ready; the message ends with the tail of its log."""


def log_path(name: str) -> Path:
    return state_folder() / "log" / f"{name}.log"


def start(name: str, command: Sequence[object], *, environment: dict[str, str] | None = None) -> int:
    """Runs until `stop`, also when this process ends."""
    log_path(name).parent.mkdir(parents=True, exist_ok=True)
    with log_path(name).open("ab") as log:
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=state_folder(),
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    remember(process.pid, _pid_file(name))
    return process.pid


def remember(pid: int, file: Path) -> None:
    file.write_text(json.dumps({"pid": pid, "started": psutil.Process(pid).create_time()}))


def pid_of(name: str) -> int | None:
    """Its process id while it runs."""
    return remembered(_pid_file(name))


def remembered(file: Path) -> int | None:
    """The process id in the file while that process runs."""
    try:
        record = json.loads(file.read_text())
        process = psutil.Process(record["pid"])
        same = abs(process.create_time() - record["started"]) < SAME_START_S
        return process.pid if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (FileNotFoundError, json.JSONDecodeError, psutil.NoSuchProcess):
        return None


def check_running(name: str) -> None:
    if pid_of(name) is None:
        raise ProgramFailed(f"{name} ended:\n{log_tail(name)}")


def started_programs() -> list[str]:
    """All that were ever started in this state folder, newest first."""
    files = (state_folder() / "log").glob("*.pid")
    return [file.stem for file in sorted(files, key=lambda one: one.stat().st_mtime, reverse=True)]


def stop(names: Iterable[str], *, force: bool = False) -> None:
    """SIGTERM to all at once, then SIGKILL to those that are left."""
    end_all([pid for name in names if (pid := pid_of(name)) is not None], force=force)


def end_all(pids: Iterable[int], *, force: bool = False) -> None:
    left = list(pids)
    for number in (signal.SIGKILL,) if force else (signal.SIGTERM, signal.SIGKILL):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        left = _still_there(left, END_TIMEOUT_S)
    if left:
        raise ProgramFailed(f"processes {left} do not end even by SIGKILL: see ps -o pid,stat,args -p {left[0]}")


def log_tail(name: str) -> str:
    path = log_path(name)
    return "\n".join(path.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]) if path.exists() else "(no log)"


def _still_there(pids: list[int], timeout_s: float) -> list[int]:
    deadline = time.monotonic() + timeout_s
    while (left := [pid for pid in pids if _alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # our own child would stay as a zombie
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _pid_file(name: str) -> Path:
    return state_folder() / "log" / f"{name}.pid"
