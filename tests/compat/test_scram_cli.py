"""`ottla users`: list, add and remove on any Kafka, rotate on Ottla."""

import subprocess
import sys
from pathlib import Path

import pytest
from ottla.cli.control import ControlClient
from ottla.cli.main import app
from support.ports import free_port
from support.process import BrokerProcess
from support.waiting import eventually

OTTLA = Path(sys.executable).parent / "ottla"
GRPC_PORT = free_port()
BROKER_SETTINGS: dict[str, str] = {}


def users(*words: object, code: int = 0) -> str:
    done = subprocess.run([OTTLA, "users", *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def listed(bootstrap: str, user: str) -> list[tuple[str, str]]:
    rows = [line.split() for line in users("list", "--bootstrap", bootstrap).splitlines()[1:]]
    return [(mechanism, iterations) for name, mechanism, iterations in rows if name == user]


def test_add_list_and_remove(bootstrap: str, name: str, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("secret\n")
    there = ("--bootstrap", bootstrap)
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    said = users("add", name, *both, "--password-file", secret, "--iterations", 5000, *there)
    assert said == f"{name} can log in with SCRAM-SHA-256\n{name} can log in with SCRAM-SHA-512\n"
    eventually(lambda: listed(bootstrap, name), [("SCRAM-SHA-256", "5000"), ("SCRAM-SHA-512", "5000")].__eq__)
    users("remove", name, "--mechanism", "SCRAM-SHA-256", *there)
    eventually(lambda: listed(bootstrap, name), [("SCRAM-SHA-512", "5000")].__eq__)
    users("remove", name, *there)
    eventually(lambda: listed(bootstrap, name), [].__eq__)


def test_what_is_refused_is_one_line(bootstrap: str, name: str, tmp_path: Path) -> None:
    there = ("--bootstrap", bootstrap)
    assert users("add", name, *there, code=1) == (
        "ottla users: there is no terminal to ask for a password; give --password-file\n"
    )
    assert users("remove", name, *there, code=1) == f"ottla users: there is no user {name}\n"
    gone = users("remove", name, "--mechanism", "scram-sha-256", *there, code=1)
    assert gone.startswith(f"ottla users: {name}: Attempt to delete a user credential that does not exist")
    assert "there are SCRAM-SHA-256 and SCRAM-SHA-512" in users("remove", name, "--mechanism", "PLAIN", *there, code=1)
    odd = tmp_path / "librdkafka.conf"
    odd.write_text("sasl.usrname=x\n")
    assert users("list", *there, "--command-config", odd, code=1).startswith(
        f"ottla users: {odd}: sasl.usrname is not known here"
    )


def test_rotate(name: str, tmp_path: Path, make_broker: pytest.FixtureRequest) -> None:
    broker: BrokerProcess = make_broker(**{"ottla.grpc.port": str(GRPC_PORT)})  # type: ignore[operator]
    if broker.name != "ottla":
        pytest.skip("is Ottla's own")
    broker.start()
    old, new, nodes = tmp_path / "old", tmp_path / "new", ("--nodes", f"127.0.0.1:{GRPC_PORT}")
    old.write_text("old")
    new.write_text("new")
    assert f"there is no user {name}" in users("rotate", name, *nodes, "--password-file", new, code=1)
    users("add", name, "--password-file", old, "--bootstrap", broker.bootstrap)
    said = users("rotate", name, "--keep-old-for", "1h", *nodes, "--password-file", new)
    assert said == f"{name} has a new password in the fleet of {nodes[1]}; the old one is good for 1h\n"
    client = ControlClient([f"127.0.0.1:{GRPC_PORT}"])
    (kept,) = client.describe_scram(name).credentials
    client.close()
    assert kept.previous_until_ms > 0
    assert "a number and s, m, h or d" in users("rotate", name, "--keep-old-for", "soon", *nodes, code=1)
    assert (
        "INVALID_REQUEST"
        in users("rotate", name, "--keep-old-for", "8d", *nodes, "--password-file", new, code=1).upper()
    )


def test_an_open_fleet_has_no_acls_to_list(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["acls", "list", "--bootstrap", bootstrap]) == 1
    assert capsys.readouterr().err == "ottla acls: this fleet has no authorizer: everybody may do everything\n"
    with pytest.raises(SystemExit, match="0"):
        app(["acls", "test", "ann", "read", "topic:a", "--bootstrap", bootstrap])
    assert capsys.readouterr().out.startswith("allowed: User:ann READ topic:a from 127.0.0.1: this fleet has no auth")
