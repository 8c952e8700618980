"""A broker as a child process: the same handle for Apache Kafka and for Ottla."""

import atexit
import contextlib
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse
from support.frames import Connection
from support.ports import free_port

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.02
LOG_TAIL_LINES = 40


class BrokerFailed(RuntimeError):
    """The process died or did not get ready; the message ends with the tail of its log."""


class BrokerProcess(ABC):
    """One broker on its own port and data folder. `start` after `stop` or `kill` goes on with the same folder."""

    name: str

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] | None = None,
        host: str = "127.0.0.1",
        inside: Sequence[str] = (),
    ) -> None:
        """`inside` is a command prefix that runs the broker in namespaces of its own; then `host` is its address."""
        self.folder = folder
        self.data_dir = folder / "data"
        self.log_path = folder / "broker.log"
        self.host = host
        self.port = free_port()
        self.settings = dict(settings or {})
        self.entrance: Callable[[float], Connection] | None = None
        """Opens a connection by another listener than the plain one, with so many seconds for each answer."""
        self._inside = list(inside)
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @abstractmethod
    def command(self) -> list[str]:
        """What to run; called at each start."""

    def prepare(self) -> None:  # noqa: B027 (nothing is a good preparation)
        """What the data folder needs before a first start."""

    def start(self, *, wait: bool = True) -> None:
        assert not self.running, f"{self.name} runs already"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prepare()
        with open(self.log_path, "ab") as log:
            command = [*self._inside, *self.command()]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Until a Metadata answer lists a live broker."""
        deadline = time.monotonic() + timeout_s
        while not self._answers():
            if not self.running:
                raise BrokerFailed(f"{self.name} exited while starting\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise BrokerFailed(f"{self.name} not ready within {timeout_s} s\n{self.log_tail()}")
            time.sleep(POLL_S)

    def stop(self) -> int:
        """Orderly shutdown; the exit code."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"{self.name} ignored SIGTERM for {STOP_TIMEOUT_S} s\n{self.log_tail()}") from None

    def kill(self) -> None:
        """kill -9 of the broker and its worker processes: nothing gets a chance to write."""
        assert self._process is not None
        for process in self._tree():
            _signal(process.pid, signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: alive for the kernel, silent for everybody else, until `resume`."""
        for process in self._tree():
            _signal(process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        for process in self._tree():
            _signal(process.pid, signal.SIGCONT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        if self.running:
            self.kill()

    def pids(self) -> list[int]:
        """The broker and its worker processes, as of now."""
        return [process.pid for process in self._tree()]

    def cpu_seconds(self) -> float:
        """User and system time of the whole process tree so far (ended children are counted by their parent)."""
        total = 0.0
        for process in self._tree():
            used = _observe(process, "cpu_times")
            if used is not None:
                total += used.user + used.system
        return total

    def resident_bytes(self) -> int:
        return sum(memory.rss for process in self._tree() if (memory := _observe(process, "memory_info")) is not None)

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        if not self.log_path.exists():
            return "(no log)"
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def _tree(self) -> list[psutil.Process]:
        try:
            parent = psutil.Process(self.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def connect(self, read_timeout_s: float) -> Connection:
        if self.entrance is not None:
            return self.entrance(read_timeout_s)
        return Connection(self.port, host=self.host, read_timeout_s=read_timeout_s)

    def _answers(self) -> bool:
        try:
            with self.connect(5.0) as connection:
                answer = connection.ask(MetadataRequest(topics=()), MetadataResponse)
                return len(answer.brokers) > 0
        except OSError:
            return False


def _observe(process: psutil.Process, what: str):  # type: ignore[no-untyped-def]
    """The reading, or None when the process is gone."""
    try:
        return getattr(process, what)()
    except psutil.NoSuchProcess:
        return None


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
