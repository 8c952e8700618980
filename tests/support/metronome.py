"""How late this machine itself is: what a process waits that asks for nothing but to be woken and to write some bytes.

A machine that others share stands still at times: its hypervisor runs somebody else, or its disk is busy. Beside an
attack that must not be held against the broker, nor may anything of the broker be excused by it. So there is one such
process on each processor, and what they waited is shown beside what the broker's clients waited.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

PERIOD_S = 0.003
BYTES = bytes(100)


@dataclass(frozen=True)
class Noise:
    """Milliseconds of lateness: of one record that crosses every processor once, at p99 and at worst."""

    p99_ms: float
    worst_ms: float

    def __str__(self) -> str:
        return f"machine p99 {self.p99_ms:.1f}, worst {self.worst_ms:.1f} ms"


QUIET = Noise(0.0, 0.0)


class Metronomes:
    """They run until `finish`."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._processes = [
            subprocess.Popen([sys.executable, __file__, str(cpu)], stdin=pipe, stdout=pipe, text=True)
            for cpu in sorted(os.sched_getaffinity(0))
        ]
        for process in self._processes:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"

    def finish(self) -> Noise:
        heard = [json.loads(process.communicate(timeout=30)[0]) for process in self._processes]
        return Noise(sum(one["p99_ms"] for one in heard), sum(one["worst_ms"] for one in heard))

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def beat(over: threading.Event) -> list[float]:
    """How late every beat was. Those missed in a long pause count as well, as the records of a neighbour do."""
    late_ms, due = [], time.monotonic()
    with tempfile.TemporaryFile() as file:
        while not over.is_set():
            due += PERIOD_S
            if (left_s := due - time.monotonic()) > 0:
                time.sleep(left_s)
            os.pwrite(file.fileno(), BYTES, 0)
            late_ms.append((time.monotonic() - due) * 1000)
    return late_ms


def summary(late_ms: Sequence[float]) -> dict[str, float]:
    ordered = sorted(late_ms) or [0.0]
    return {"p99_ms": ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)], "worst_ms": ordered[-1]}


def main(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    print("ready", flush=True)
    print(json.dumps(summary(beat(over))), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
