"""A cell per broker: network and mount namespaces of its own, joined by a switch, so that single links can be cut.

    this machine ── switch ──┬── cell 0 (10.x.y.10)
                             ├── cell 1 (10.x.y.11)
                             └── cell 2 (10.x.y.12)

Everything hangs on processes that end when this one does, even by kill -9, and the kernel then takes the namespaces,
links and mounts away: nothing to clean up, nothing left behind. Needs root.
"""

import contextlib
import os
import secrets
import subprocess
from pathlib import Path

# Nobody answers to this address: what is sent to it is dropped without a word, as by a dead network.
NOWHERE = "02:00:00:00:00:01"
MY_HOST, FIRST_HOST = 1, 10


def cells_possible() -> bool:
    return os.geteuid() == 0


class Cell:
    """Namespaces held by a process: a `cat` that reads from our pipe, and so ends when we do."""

    def __init__(self, host: str = "") -> None:
        self.host = host
        keep = ["unshare", "--net", "--mount", "cat"]
        self._keeper = subprocess.Popen(keep, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # The echo says that the namespaces are there.
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._keeper.stdin.write(b"!")
        self._keeper.stdin.flush()
        assert self._keeper.stdout.read(1) == b"!", "unshare made no namespaces"
        self.run("ip", "link", "set", "lo", "up")

    @property
    def pid(self) -> int:
        return self._keeper.pid

    @property
    def enter(self) -> list[str]:
        """Prefix of a command that is to run inside."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", f"--mount=/proc/{self.pid}/ns/mnt"]

    def run(self, *command: str) -> None:
        run(*self.enter, *command)

    def own_disk(self, folder: Path, size_mb: int) -> None:
        """A small disk at that folder, seen inside only."""
        folder.mkdir(parents=True, exist_ok=True)
        self.run("mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(folder))

    def seen_inside(self, path: Path) -> Path:
        """What the cell sees at that path, for this process."""
        return Path(f"/proc/{self.pid}/root{path}")

    def close(self) -> None:
        self._keeper.kill()
        self._keeper.wait()


class Cells:
    """Cells on one switch, and `link` to it from here. A cut goes one way: what `source` sends to `target` is lost."""

    def __init__(self, count: int) -> None:
        net = f"10.{200 + secrets.randbelow(50)}.{secrets.randbelow(256)}"
        self.link = f"ottla-{secrets.token_hex(3)}"
        self._switch = Cell()
        self._switch.run("ip", "link", "add", "switch", "type", "bridge")
        self._switch.run("ip", "link", "set", "switch", "up")
        self._join_myself(f"{net}.{MY_HOST}")
        self.cells = [self._join(f"{net}.{FIRST_HOST + number}", number) for number in range(count)]

    def cut(self, source: int, target: int) -> None:
        self._reach(source, target, "replace", "lladdr", NOWHERE, "nud", "permanent")

    def mend(self, source: int, target: int) -> None:
        self._reach(source, target, "del")

    def mend_all(self) -> None:
        for source in range(len(self.cells)):
            for target in range(len(self.cells)):
                if source != target:
                    with contextlib.suppress(subprocess.CalledProcessError):  # no entry: it was not cut
                        self.mend(source, target)

    def close(self) -> None:
        for cell in [*self.cells, self._switch]:
            cell.close()

    def _reach(self, source: int, target: int, verb: str, *how: str) -> None:
        self.cells[source].run("ip", "neigh", verb, self.cells[target].host, "dev", "eth0", *how)

    def _join(self, host: str, number: int) -> Cell:
        cell, outer = Cell(host), f"port{number}"
        self._switch.run("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", str(cell.pid))
        self._plug(outer)
        cell.run("ip", "address", "add", f"{host}/24", "dev", "eth0")
        cell.run("ip", "link", "set", "eth0", "up")
        return cell

    def _join_myself(self, host: str) -> None:
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "uplink", "netns", str(self._switch.pid))
        self._plug("uplink")
        run("ip", "address", "add", f"{host}/24", "dev", self.link)
        run("ip", "link", "set", self.link, "up")

    def _plug(self, port: str) -> None:
        self._switch.run("ip", "link", "set", port, "master", "switch", "up")


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
