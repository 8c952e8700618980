"""The faults do what their names say: a cut link is cut, a slow disk is slow. Otherwise passing them means nothing."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cells import Cells, cells_possible
from support.faults import fill
from support.slow_disk import slowed_while
from support.waiting import eventually

pytestmark = pytest.mark.skipif(not cells_possible(), reason="namespaces need root")

TESTS = Path(__file__).parent.parent
PORT = 9000
SERVE = f"import socket; s = socket.create_server(('', {PORT}))\nwhile True: s.accept()[0].close()"
CONNECT = f"import socket, sys; socket.create_connection((sys.argv[1], {PORT}), 1)"
WRITE_AND_SYNC = (
    "import os, sys, time\n"
    "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); begin = time.monotonic()\n"
    "for _ in range(20): os.pwritev(fd, [b'x'], 0)\n"
    "os.fdatasync(fd); print(time.monotonic() - begin)"
)


@pytest.fixture(scope="module")
def cells() -> Iterator[Cells]:
    made = Cells(3)
    servers = [subprocess.Popen([*cell.enter, sys.executable, "-c", SERVE]) for cell in made.cells]
    for cell in made.cells:
        eventually(lambda cell=cell: connects([], cell.host), bool)
    yield made
    for server in servers:
        server.kill()
        server.wait()
    made.close()


def connects(enter: list[str], host: str) -> bool:
    return subprocess.run([*enter, sys.executable, "-c", CONNECT, host], stderr=subprocess.DEVNULL).returncode == 0


def reachable(cells: Cells) -> set[tuple[int, int]]:
    numbered = list(enumerate(cells.cells))
    return {(a, b) for a, one in numbered for b, other in numbered if a != b and connects(one.enter, other.host)}


def test_one_link_is_cut_and_mended(cells: Cells) -> None:
    everybody = {(a, b) for a in range(3) for b in range(3) if a != b}
    assert reachable(cells) == everybody
    cells.cut(0, 1)
    assert reachable(cells) == everybody - {(0, 1), (1, 0)}, "TCP needs both ways"
    assert all(connects([], cell.host) for cell in cells.cells), "clients reach all"
    cells.mend_all()
    assert reachable(cells) == everybody


def test_a_disk_of_its_own_fills_up(cells: Cells, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    cells.cells[0].own_disk(disk, size_mb=4)
    inside = cells.cells[0].seen_inside(disk)
    fill(inside / "ballast")
    with pytest.raises(OSError, match="No space left"):
        (inside / "more").write_bytes(bytes(8192))
    assert list(disk.iterdir()) == [], "nobody else sees it"


def test_a_slow_disk_is_slow_while_told(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    def takes_s() -> float:
        command = [*slowed_while(flag), sys.executable, "-c", WRITE_AND_SYNC, str(tmp_path / "file")]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    flag.touch()
    assert takes_s() >= 0.3
    flag.unlink()
    assert takes_s() < 0.25


def test_nothing_is_left_behind() -> None:
    """Whoever made the cells is killed: its namespaces and links go with it."""
    program = "import time; from support.cells import Cells; print(Cells(2).link, flush=True); time.sleep(600)"
    maker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=TESTS)
    assert maker.stdout is not None
    link = maker.stdout.readline().strip()
    assert link in links()
    maker.kill()
    maker.wait()
    eventually(links, lambda left: link not in left)


def links() -> set[str]:
    shown = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    return {line.split("@")[0] for line in shown.splitlines() if line.startswith("ottla-")}
