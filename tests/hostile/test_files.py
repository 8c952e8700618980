"""More connections than the process may have files."""

import resource
import socket
import subprocess
import time
from contextlib import ExitStack, suppress

from support.neighbour import Neighbour
from support.ottla_broker import OttlaBroker

FILES_MAX = 256
CONNECTIONS = 300


def test_a_full_house_lets_nobody_down(tmp_path):
    """Whoever is in goes on, whoever comes later waits, and no log dir is given up."""
    limited = ["prlimit", f"--nofile={FILES_MAX}:{FILES_MAX}"]
    broker = OttlaBroker(tmp_path, inside=limited, settings={"num.partitions": "3"})
    broker.start()
    neighbour = Neighbour(broker.bootstrap, "neighbour")
    try:
        with ExitStack() as stack:
            for _ in range(CONNECTIONS):  # those that find the kernel's queue full go on trying
                each = stack.enter_context(socket.socket())
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", broker.port))
            time.sleep(1)  # the attack is that they stay
            seen = neighbour.finish()
        print(f"\n  {seen.summary()}")
        seen.check()
        broker.wait_until_ready(10)
        later = Neighbour(broker.bootstrap, "later")
        later.finish().check()
        assert "clients wait" in broker.log_path.read_text()
        assert "offline" not in broker.log_path.read_text()
        assert broker.stop() == 0
    finally:
        broker.close()


def test_the_soft_limit_is_raised(tmp_path):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    broker = OttlaBroker(tmp_path, inside=["prlimit", f"--nofile=256:{hard}"])
    broker.start()
    try:
        seen = subprocess.run(
            ["prlimit", "--pid", str(broker.pid), "--nofile", "--output=SOFT", "--noheadings"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(seen.stdout) == hard
    finally:
        with suppress(AssertionError):
            broker.stop()
        broker.close()
