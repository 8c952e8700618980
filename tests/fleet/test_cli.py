"""`ottla fleet` as a person runs it: processes, folders, pid files, restarts, an orderly end. Ottla only."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.librdkafka import Sent, make_topic, read, send
from support.ports import bindable, free_port
from support.waiting import eventually

START_S = STOP_S = 60.0
GRPC_PORTS_ABOVE = 100


def ottla(*words: str) -> list[str]:
    return [sys.executable, "-m", "ottla", *words]


def run(*words: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(ottla(*words), capture_output=True, text=True, timeout=timeout_s)


def port_with_room() -> int:
    """The first of three free ports whose gRPC ports are free too."""
    while True:
        port = free_port()
        if all(bindable(port + more + number) for number in range(3) for more in (0, GRPC_PORTS_ABOVE)):
            return port


class LocalFleet:
    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, port_with_room()
        self.output = folder.parent / "up.log"

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def up(self) -> None:
        place = ("--data-dir", str(self.folder), "--port", str(self.port))
        with open(self.output, "ab") as log:
            words = ottla("fleet", "up", "-n", "3", "--racks", "a,b,c", *place, "--set", "num.partitions=2")
            self.process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.wait_for_line("brokers up: 0, 1, 2;")

    def wait_for_line(self, text: str, *, times: int = 1) -> None:
        eventually(lambda: self.output.read_text(), lambda seen: seen.count(text) >= times, timeout_s=START_S)

    def pid(self, broker: int) -> int:
        return int((self.folder / f"broker-{broker}" / "ottla.pid").read_text())

    def down(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    fleet = LocalFleet(tmp_path_factory.mktemp("local") / "data")
    fleet.up()
    yield fleet
    if fleet.process.poll() is None:
        fleet.process.kill()
        fleet.process.wait()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_folders_and_plain_lines(local: LocalFleet) -> None:
    assert sorted(entry.name for entry in local.folder.iterdir() if entry.is_dir()) == [
        "broker-0",
        "broker-1",
        "broker-2",
    ]
    assert all((local.folder / f"broker-{n}" / "ottla.log").stat().st_size > 0 for n in range(3))
    assert len({local.pid(n) for n in range(3)}) == 3
    lines = local.output.read_text().splitlines()
    assert f"broker 1 started: port {local.port + 1}, rack b, pid {local.pid(1)}" in lines
    assert "\x1b" not in local.output.read_text(), "no colours where there is no terminal"


def test_status(local: LocalFleet) -> None:
    done = run("fleet", "status", "--data-dir", str(local.folder))
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^\s+(\d)\s+(\w)\s+(\S+)\s+(\w+)", done.stdout, re.M)
    assert rows == [(str(n), "abc"[n], f"127.0.0.1:{local.port + n}", "running") for n in range(3)], done.stdout
    assert done.stdout.count("running, controller") == 1
    assert "all in sync" in done.stdout
    by_address = run("fleet", "status", "--nodes", f"127.0.0.1:{local.port + GRPC_PORTS_ABOVE + 1}")
    assert by_address.returncode == 0 and "running" in by_address.stdout


def test_a_dead_broker_is_started_again(local: LocalFleet) -> None:
    before = local.pid(2)
    os.kill(before, signal.SIGKILL)
    local.wait_for_line("broker 2 ended by SIGKILL; it is started again in 1 s")
    eventually(lambda: local.pid(2), lambda pid: pid != before)
    local.wait_for_line("broker 2 started again")
    eventually(
        lambda: run("fleet", "status", "--data-dir", str(local.folder)).stdout,
        lambda shown: shown.count("running") == 3,
        timeout_s=START_S,
    )


def test_drain_moves_leaders_away(local: LocalFleet) -> None:
    make_topic(local.bootstrap, "drained", partitions=6, replicas=3)
    done = run("fleet", "drain", "1", "--data-dir", str(local.folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "broker 1 may be stopped now"


def test_a_second_fleet_is_refused(local: LocalFleet, tmp_path: Path) -> None:
    here = run("fleet", "up", "--data-dir", str(local.folder), "--port", str(local.port))
    assert here.returncode == 1
    assert here.stderr == (f"ottla fleet: a fleet runs in {local.folder} already; stop it or use another --data-dir\n")
    elsewhere = run("fleet", "up", "--data-dir", str(tmp_path / "other"), "--port", str(local.port))
    taken = (
        f"ottla fleet: port {local.port} (broker 0, Kafka clients) is in use; choose others: `ottla fleet up "
        f"--data-dir {tmp_path}/other --port "
    )
    assert elsewhere.stderr.startswith(taken)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-n", "0"], "-n 0: a local fleet has 1 to 100 brokers"),
        (["-n", "3", "--racks", "a,b"], "--racks names 2 racks for 3 brokers: one for each, such as a,b,c"),
        (
            ["--port", "70000"],
            "--port 70000: the first port of 3 brokers is 1 to 65333, to leave room for the others",
        ),
        (["--set", "num.partitions=0"], "--set: num.partitions=0: Value must be at least 1"),
        (["--set", "oops"], "--set oops: expected key=value, such as --set log.retention.hours=24"),
    ],
)
def test_bad_words_are_refused_in_one_line(tmp_path: Path, words: list[str], sentence: str) -> None:
    done = run("fleet", "up", "--data-dir", str(tmp_path / "data"), *words)
    assert (done.returncode, done.stderr) == (1, f"ottla fleet: {sentence}\n")
    assert not (tmp_path / "data").exists(), "nothing is made before all is well"


def test_status_where_no_fleet_is(tmp_path: Path) -> None:
    done = run("fleet", "status", "--data-dir", str(tmp_path))
    assert done.returncode == 1
    assert "no fleet was started in" in done.stderr and "--nodes" in done.stderr


def test_help_teaches() -> None:
    assert "ottla fleet up -n 3 --racks a,b,c" in run("fleet", "--help").stdout
    assert "kill -9 $(cat data/broker-1/ottla.pid)" in " ".join(run("fleet", "up", "--help").stdout.split())


def test_down_and_up_again_with_its_data(local: LocalFleet) -> None:
    """The last test of the module: the fleet ends here."""
    make_topic(local.bootstrap, "kept", partitions=1, replicas=3)
    assert len(send(local.bootstrap, "kept", [Sent(b"still here")]).offsets) == 1
    pids = [local.pid(n) for n in range(3)]
    assert local.down() == 0
    assert not any(map(alive, pids))
    assert not list(local.folder.glob("broker-*/ottla.pid"))
    assert local.output.read_text().count("stopped") == 3 and "was killed" not in local.output.read_text()
    local.output.write_text("")
    local.up()
    assert [message.value() for message in read(local.bootstrap, "kept")] == [b"still here"]
    assert local.down() == 0
