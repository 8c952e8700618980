"""Commands that run to their end, with a time limit and an error that shows what they said."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

TIMEOUT_S = 120.0
POLL_S = 0.1


class CommandFailed(RuntimeError):
    """The command line and what it said."""


def run(
    *command: object,
    stdin: str | None = None,
    environment: dict[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> str:
    """Its standard output; CommandFailed when it does not end well in time."""
    words = list(map(str, command))
    try:
        done = subprocess.run(
            words,
            input=stdin,
            capture_output=True,
            text=True,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stderr or b"").decode() if not isinstance(late.stderr, str) else late.stderr
        raise CommandFailed(f"not done within {timeout_s:g} s: {shown(words)}\n{said}") from None
    if done.returncode != 0:
        raise CommandFailed(f"exit code {done.returncode}: {shown(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def answers(*command: object, environment: dict[str, str] | None = None, timeout_s: float = 10.0) -> bool:
    try:
        run(*command, environment=environment, timeout_s=timeout_s)
    except (CommandFailed, FileNotFoundError):
        return False
    return True


def wait_until(is_so: Callable[[], bool], *, what: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise CommandFailed(f"{what}: still not so after {timeout_s:g} s")
        time.sleep(POLL_S)


def shown(words: Sequence[str]) -> str:
    line = " ".join(words)
    return line if len(line) < 400 else line[:400] + " …"
