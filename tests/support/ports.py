"""Ports that nobody else takes between being chosen and being bound."""

import fcntl
import os
import random
import socket
import tempfile
from typing import TextIO

# Below the kernel's range for outgoing connections, so that no client socket takes a chosen port.
FIRST_PORT, LAST_PORT = 12_000, 29_999  # NodePorts of a test cluster begin at 30000
_reservations: list[TextIO] = []
_random = random.SystemRandom()


def free_port() -> int:
    """A port on 127.0.0.1, reserved for this process (across parallel test workers) until it exits."""
    for _ in range(1000):
        port = _random.randrange(FIRST_PORT, LAST_PORT)
        if bindable(port) and _reserve(port):
            return port
    raise RuntimeError(f"no free port between {FIRST_PORT} and {LAST_PORT}")


def bindable(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _reserve(port: int) -> bool:
    folder = os.path.join(tempfile.gettempdir(), f"ottla-test-ports-{os.getuid()}")
    os.makedirs(folder, exist_ok=True)
    lock = open(os.path.join(folder, str(port)), "w")  # noqa: SIM115 (held until this process ends)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return False
    _reservations.append(lock)
    return True
