"""The brokers of a local fleet as child processes: started, started again when they die, stopped in order."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.cli.fleet_plan import BrokerPlan, FleetPlan
from ottla.errors import Refusal
from ottla.system import RealDisk

__all__ = ["FleetProcesses", "alone", "end_with_parent"]

RESTART_AFTER_S = 1.0
STOP_S_MAX = 20.0
# A broker that dies sooner after its first start never worked: a reason to give up, not to try for ever.
FIRST_START_S = 5.0
PR_SET_PDEATHSIG = 1
LOG_TAIL_LINES = 5


class FleetProcesses:
    """`report` gets a line for every start and end."""

    def __init__(self, plan: FleetPlan, report: Callable[[str], None]) -> None:
        self._plan = plan
        self._report = report
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._started_s: dict[int, float] = {}
        self._start_again_s: dict[int, float] = {}
        self.restarts = dict.fromkeys((broker.id for broker in plan.brokers), 0)

    def start(self) -> None:
        for broker in self._plan.brokers:
            self._start(broker)

    def tend(self) -> None:
        """Start brokers again that died a second ago."""
        now = time.monotonic()
        for broker in self._plan.brokers:
            process = self._running.get(broker.id)
            if process is not None and process.poll() is not None:
                self._died(broker, process.returncode, now)
            elif process is None and now >= self._start_again_s.get(broker.id, now):
                self.restarts[broker.id] += 1
                self._start(broker)

    def pid(self, broker: int) -> int | None:
        process = self._running.get(broker)
        return None if process is None else process.pid

    def stop(self) -> None:
        """The last two together: one of them alone has no quorum that could accept its departure."""
        order = [broker for broker in reversed(self._plan.brokers) if broker.id in self._running]
        while order:
            leaving, order = (order, []) if len(order) <= 2 else (order[:1], order[1:])
            for broker in leaving:
                self._running[broker.id].terminate()
            for broker in leaving:
                self._await_end(broker)

    def _start(self, broker: BrokerPlan) -> None:
        os.makedirs(broker.folder, exist_ok=True)
        with open(broker.log_file, "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "ottla", *broker.arguments()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us: we stop them in order
                preexec_fn=end_with_parent,
            )
        self._running[broker.id] = process
        self._started_s[broker.id] = time.monotonic()
        _write_pid(broker, process.pid)
        rack = f", rack {broker.rack}" if broker.rack else ""
        again = " again" if self.restarts[broker.id] else ""
        probes = f", probes and /metrics on {broker.health_port}" if broker.health_port else ""
        self._report(f"broker {broker.id} started{again}: port {broker.port}{rack}{probes}, pid {process.pid}")

    def _died(self, broker: BrokerPlan, status: int, now: float) -> None:
        del self._running[broker.id]
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
        if self.restarts[broker.id] == 0 and status > 0 and now - self._started_s[broker.id] < FIRST_START_S:
            raise Refusal(f"broker {broker.id} did not start; {broker.log_file} ends with:\n{_tail(broker.log_file)}")
        self._start_again_s[broker.id] = now + RESTART_AFTER_S
        self._report(f"broker {broker.id} ended {how}; it is started again in {RESTART_AFTER_S:g} s")

    def _await_end(self, broker: BrokerPlan) -> None:
        process = self._running.pop(broker.id)
        try:
            process.wait(STOP_S_MAX)
            self._report(f"broker {broker.id} stopped")
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self._report(f"broker {broker.id} did not stop within {STOP_S_MAX:g} s and was killed")
        with contextlib.suppress(FileNotFoundError):
            os.remove(broker.pid_file)


@contextmanager
def alone(plan: FleetPlan) -> Iterator[None]:
    """Hold the folder: one fleet at a time."""
    try:
        os.makedirs(plan.folder, exist_ok=True)
        lock = RealDisk().lock(f"{plan.folder}/fleet.lock")
    except BlockingIOError:
        raise Refusal(f"a fleet runs in {plan.folder} already; stop it or use another --data-dir") from None
    except OSError as error:
        raise Refusal(f"{plan.folder} cannot be used: {error.strerror}; use another --data-dir") from None
    try:
        yield
    finally:
        lock.close()


def end_with_parent() -> None:
    """In the child: it stops cleanly when its parent is killed, instead of running on unnoticed."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _write_pid(broker: BrokerPlan, pid: int) -> None:
    with open(broker.pid_file + ".tmp", "w", encoding="ascii") as file:
        file.write(f"{pid}\n")
    os.replace(broker.pid_file + ".tmp", broker.pid_file)


def _tail(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return "".join(file.readlines()[-LOG_TAIL_LINES:]).rstrip()
