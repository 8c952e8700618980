"""A copier, of one of many clients, in a process that can be killed, and that is started again when it gave up."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.copy_history import Outcome
from support.go import go_program
from support.java import program_command

STOP_S = 60.0
LOG_TAIL_CHARACTERS = 4000
GAVE_UP = 3
COMMANDS: dict[str, Callable[[], list[str]]] = {
    "java": lambda: program_command("TransactionalCopier"),
    "librdkafka": lambda: [sys.executable, "-m", "support.copier"],
    "kafka-python": lambda: [sys.executable, "-m", "support.python_copier", "kafka-python"],
    "aiokafka": lambda: [sys.executable, "-m", "support.python_copier", "aiokafka"],
    "franz-go": lambda: [str(go_program("copier"))],
}


@dataclass(frozen=True)
class Pipeline:
    """From one topic to another. `kind` is a key of COMMANDS; totals go to a partition of their own."""

    kind: str
    bootstrap: str
    source: str
    target: str
    totals: int
    protocol: str

    @property
    def group(self) -> str:
        return f"of-{self.target}"


class CopierProcess:
    """One transactional id over all its processes. `outcomes`: how every attempt ended."""

    def __init__(self, pipeline: Pipeline, folder: Path, number: int) -> None:
        self.name, self.group = f"{pipeline.target}-{number}", pipeline.group
        self.log_path = folder / f"{self.name}.log"
        self.outcomes: dict[str, Outcome] = {}
        self.errors: list[str] = []
        self._pipeline, self._lives = pipeline, 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def committed(self) -> int:
        return sum(outcome is Outcome.COMMITTED for outcome in list(self.outcomes.values()))  # its reader adds to them

    def start(self, *, transaction_timeout_ms: int) -> None:
        self._lives += 1
        self._timeout_ms = transaction_timeout_ms
        pipeline = self._pipeline
        topics = [pipeline.bootstrap, pipeline.source, pipeline.target, str(pipeline.totals), pipeline.group]
        arguments = [*topics, self.name, f"{self.name}.{self._lives}", str(transaction_timeout_ms), pipeline.protocol]
        command = [*COMMANDS[pipeline.kind](), *arguments]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        pipe = subprocess.PIPE
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, env=environment)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """kill -9; what it printed before is still read."""
        assert self._process is not None
        self._process.kill()
        self._ended()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def tend(self) -> None:
        """Restarts a copier that gave up, as a supervisor would."""
        assert self._process is not None
        if self._process.poll() is not None:
            code = self._ended()
            assert code == GAVE_UP, f"{self.name} ended with {code}: {self.errors[-3:]}"
            self.start(transaction_timeout_ms=self._timeout_ms)

    def finish(self) -> int:
        """Ends after the transaction that is under way; its exit code."""
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            log = self.log_path.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]
            text = f"{self.name} did not end in {STOP_S:g} s; {self.errors[-3:]}; its log: {log}"
            raise AssertionError(text) from None
        return self._ended()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._ended()

    def _ended(self) -> int:
        assert self._process is not None
        code = self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        return code

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            what, _, rest = line.rstrip("\n").partition(" ")
            if what == "begin":
                self.outcomes[rest] = Outcome.OPEN
            elif what in ("commit", "abort"):
                self.outcomes[rest] = Outcome(what)
            else:
                self.errors.append(line.rstrip("\n"))
