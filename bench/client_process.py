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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.process import BrokerProcess

CORES = len(os.sched_getaffinity(0))
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BUSY_THREAD = 0.90
BUSY_MACHINE = 0.95
SAMPLE_S = 0.1
# A JVM's start and the first connection are no part of the steady run.
WARM_UP_S = 1.5


@dataclass
class ThreadWatch:
    """Samples /proc of one process: CPU seconds by thread at the end of the warm-up and at the last sight."""

    pid: int
    begin_s: float = 0.0
    end_s: float = 0.0
    at_begin: dict[str, float] = field(default_factory=dict)
    at_end: dict[str, float] = field(default_factory=dict)

    def run(self, stop: threading.Event) -> None:
        started = time.monotonic()
        while not stop.wait(SAMPLE_S):
            now, seen = time.monotonic(), _cpu_by_thread(self.pid)
            if not seen:
                return
            if not self.at_begin or now - started < WARM_UP_S:
                self.begin_s, self.at_begin = now, seen
            self.end_s, self.at_end = now, seen

    def busiest(self) -> float:
        """The share of one core that the busiest thread took."""
        window = self.end_s - self.begin_s
        if window <= 0:
            return 0.0
        return max((cpu - self.at_begin.get(thread, 0.0)) / window for thread, cpu in self.at_end.items())


@dataclass(frozen=True)
class ClientRun:
    output: str
    wall_s: float
    client_cpu_s: float
    client_busiest: float
    broker_cpu_s: float
    broker_resident_bytes_max: int

    def json(self) -> dict[str, float]:
        """The client's last line; our own clients print their figures there."""
        found = json.loads(self.output.strip().splitlines()[-1])
        assert isinstance(found, dict)
        return found

    @property
    def limited_by(self) -> str:
        client_share = self.client_cpu_s / self.wall_s / CORES
        broker_share = self.broker_cpu_s / self.wall_s / CORES
        proof = (
            f"client's busiest thread {self.client_busiest:.0%} of a core, client {client_share:.0%} "
            f"and broker {broker_share:.0%} of {CORES} cores"
        )
        if self.client_busiest >= BUSY_THREAD or client_share >= BUSY_THREAD:
            return f"client ({proof})"
        if client_share + broker_share >= BUSY_MACHINE:
            return f"machine ({proof})"
        return f"broker ({proof})"


def run_client(broker: BrokerProcess, command: Sequence[str], *, timeout_s: float = 300.0) -> ClientRun:
    """Runs it to its end; AssertionError with its output when it fails."""
    cpu_before, started = broker.cpu_seconds(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch, stop, memory = ThreadWatch(process.pid), threading.Event(), MemoryWatch(broker)
    watchers = [threading.Thread(target=each.run, args=(stop,)) for each in (watch, memory)]
    for watcher in watchers:
        watcher.start()
    try:
        output, usage, code, errors = _drain(process, timeout_s)
    finally:
        stop.set()
        for watcher in watchers:
            watcher.join()
    wall_s = time.monotonic() - started
    assert code == 0, f"client failed ({code}): {' '.join(command[-10:])}\n{output[-2000:]}{errors[-2000:]}"
    return ClientRun(
        output=output,
        wall_s=wall_s,
        client_cpu_s=usage,
        client_busiest=watch.busiest(),
        broker_cpu_s=broker.cpu_seconds() - cpu_before,
        broker_resident_bytes_max=memory.highest,
    )


def client_program(name: str, *arguments: object) -> list[str]:
    """One of bench/clients, in a Python of its own."""
    return [sys.executable, str(Path(__file__).parent / "clients" / f"{name}.py"), *map(str, arguments)]


class MemoryWatch:
    """The broker's highest resident size while a client runs."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self.highest = 0

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(5 * SAMPLE_S):
            self.highest = max(self.highest, self._broker.resident_bytes())


def _drain(process: "subprocess.Popen[str]", timeout_s: float) -> tuple[str, float, int, str]:
    """Output, CPU seconds, exit code, errors. wait4 tells the CPU of this child alone."""
    assert process.stdout and process.stderr
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read() if process.stderr else ""))
    reader.start()
    killer = threading.Timer(timeout_s, process.kill)
    killer.start()
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    killer.cancel()
    reader.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    return output, usage.ru_utime + usage.ru_stime, process.returncode, errors[0]


def _cpu_by_thread(pid: int) -> dict[str, float]:
    found = {}
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            fields = Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()
            found[thread] = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    except (FileNotFoundError, ProcessLookupError):
        return found
    return found
