"""Client programs as child processes: what they print, how long they ran and which of their threads was busiest.

A client is the limit when one of its threads was on a core for 90 % of the time (it cannot be spread further), or when
the client alone took 90 % of all cores. Otherwise, when client and broker together took 95 % of all cores, the machine
is the limit; else the broker is.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

CORES = len(os.sched_getaffinity(0))
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BUSY_THREAD = 0.90
BUSY_MACHINE = 0.95
SAMPLE_S = 0.1
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CLIENT_SETTINGS = "BENCH_CLIENT_SETTINGS"  # read by bench/clients/connecting.py
# Starting an interpreter or a JVM and connecting are no part of the steady run.
PYTHON_WARM_UP_S = 0.5
JAVA_WARM_UP_S = 1.5


class Watched(Protocol):
    """A broker or a fleet of them."""

    def pids(self) -> list[int]: ...
    def cpu_seconds(self) -> float: ...


@dataclass(frozen=True)
class Shares:
    """CPU over the steady part of a run: the client's busiest thread of one core; client and broker of all cores."""

    busiest_thread: float
    client: float
    broker: float

    @property
    def limited_by(self) -> str:
        proof = (
            f"client's busiest thread {self.busiest_thread:.0%} of a core, client {self.client:.0%} "
            f"and broker {self.broker:.0%} of {CORES} cores"
        )
        if self.busiest_thread >= BUSY_THREAD or self.client >= BUSY_THREAD:
            return f"client ({proof})"
        if self.client + self.broker >= BUSY_MACHINE:
            return f"machine ({proof})"
        return f"broker ({proof})"


@dataclass(frozen=True)
class Sample:
    at_s: float
    client_by_thread: dict[str, float]
    broker_cpu_s: float


class Watch:
    """Samples /proc of client and broker while the client runs. Cheap, so that it does not disturb what it watches."""

    def __init__(self, client_pid: int, broker: Watched) -> None:
        self._client_pid = client_pid
        self._broker_pids = broker.pids()
        self._samples: list[Sample] = []
        self.broker_resident_bytes_max = 0

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(SAMPLE_S) and (threads := _cpu_by_thread(self._client_pid)):
            broker_cpu_s = sum(sum(_cpu_by_thread(pid).values()) for pid in self._broker_pids)
            # A thread that ended keeps what it used: the last sample often meets a client that is half gone.
            before = self._samples[-1].client_by_thread if self._samples else {}
            self._samples.append(Sample(time.monotonic(), {**before, **threads}, broker_cpu_s))
            resident = sum(_resident_bytes(pid) for pid in self._broker_pids)
            self.broker_resident_bytes_max = max(self.broker_resident_bytes_max, resident)

    def shares(self, warm_up_s: float) -> Shares:
        """Over the steady part: after the warm-up, or all of a run that is hardly longer."""
        if len(self._samples) < 2:
            return Shares(0.0, 0.0, 0.0)
        first, last = self._samples[0], self._samples[-1]
        if last.at_s - first.at_s > 2 * warm_up_s:
            first = next(sample for sample in self._samples if sample.at_s - first.at_s >= warm_up_s)
        window_s = last.at_s - first.at_s
        used = [cpu - first.client_by_thread.get(thread, 0.0) for thread, cpu in last.client_by_thread.items()]
        return Shares(
            busiest_thread=max(used) / window_s,
            client=sum(used) / window_s / CORES,
            broker=(last.broker_cpu_s - first.broker_cpu_s) / window_s / CORES,
        )


@dataclass(frozen=True)
class ClientRun:
    output: str
    shares: Shares
    broker_cpu_s: float
    broker_resident_bytes_max: int

    def json(self) -> dict[str, float]:
        """The client's last line; our own clients print their figures there."""
        found = json.loads(self.output.strip().splitlines()[-1])
        assert isinstance(found, dict)
        return found

    @property
    def limited_by(self) -> str:
        return self.shares.limited_by


def run_client(
    broker: Watched, command: Sequence[str], *, warm_up_s: float = PYTHON_WARM_UP_S, timeout_s: float = 300.0
) -> ClientRun:
    """Runs it to its end; AssertionError with its output when it fails."""
    cpu_before = broker.cpu_seconds()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch, stop = Watch(process.pid, broker), threading.Event()
    watcher = threading.Thread(target=watch.run, args=(stop,))
    watcher.start()
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    finally:
        stop.set()
        watcher.join()
    tail = f"{output[-2000:]}{errors[-2000:]}"
    assert process.returncode == 0, f"client failed ({process.returncode}): {' '.join(command[-10:])}\n{tail}"
    return ClientRun(
        output=output,
        shares=watch.shares(warm_up_s),
        broker_cpu_s=broker.cpu_seconds() - cpu_before,
        broker_resident_bytes_max=watch.broker_resident_bytes_max,
    )


def client_program(name: str, *arguments: object, settings: Mapping[str, str] | None = None) -> list[str]:
    """One of bench/clients, in a Python of its own. `settings` are librdkafka's, beside those of the program."""
    program = [sys.executable, str(Path(__file__).parent / "clients" / f"{name}.py"), *map(str, arguments)]
    return ["env", f"{CLIENT_SETTINGS}={json.dumps(dict(settings))}", *program] if settings else program


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _cpu_by_thread(pid: int) -> dict[str, float]:
    found = {}
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            fields = Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()
            found[thread] = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    except (FileNotFoundError, ProcessLookupError):
        return found
    return found
