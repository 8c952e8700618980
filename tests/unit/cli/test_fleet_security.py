"""What `ottla fleet up --secure` makes, and keeps."""

import datetime
from pathlib import Path

import pytest
from ottla.cli.fleet_plan import how_to_start, keep, kept_security, make_plan
from ottla.cli.fleet_security import FleetSecurity
from ottla.errors import Refusal
from ottla.security import pki

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


def prepared(folder: Path) -> FleetSecurity:
    made = FleetSecurity(str(folder), "127.0.0.1", CLUSTER_ID)
    made.prepare(brokers=2, bootstrap="127.0.0.1:1")
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_start_again_changes_nothing(tmp_path: Path) -> None:
    prepared(tmp_path)
    before = contents(tmp_path)
    assert before[".gitignore"] == b"*\n"
    assert {"pki/broker-0.pem", "pki/broker-1.pem", "pki/admin.pem", "client.properties", "librdkafka.conf"} <= set(
        before
    )
    prepared(tmp_path)
    assert contents(tmp_path) == before


def test_certificates_that_end_soon_are_issued_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(tmp_path)
    before = contents(tmp_path)
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=340)
    monkeypatch.setattr("ottla.cli.fleet_security._now", lambda: later)
    prepared(tmp_path)
    after = contents(tmp_path)
    changed = {name for name in before if before[name] != after[name]}
    issued = {f"pki/{stem}.{end}" for stem in ("broker-0", "broker-1", "admin") for end in ("crt", "key", "pem")}
    assert changed == issued
    (told,) = pki.describe(str(tmp_path / "pki" / "broker-1.pem"))
    assert told.not_after > later and told.identity is not None and told.identity.node_id == 1


def test_a_start_that_was_cut_short_is_finished(tmp_path: Path) -> None:
    prepared(tmp_path)
    (tmp_path / "pki" / "broker-1.pem").unlink()
    (tmp_path / "librdkafka.conf").unlink()
    made = prepared(tmp_path)
    assert (tmp_path / "pki" / "broker-1.pem").exists()
    assert made.first_users()[0].partition("password=")[2].rstrip("]") in Path(made.librdkafka_conf).read_text()


def test_a_plan_is_secure_from_its_beginning_or_never(tmp_path: Path) -> None:
    for secure, sentence in ((True, "was made with --secure: start it with it"), (False, "was not made with --secure")):
        folder = str(tmp_path / str(secure))
        plan = make_plan(folder, count=3, racks=[], port=23_150, settings={}, secure=secure)
        (tmp_path / str(secure)).mkdir()
        keep(plan)
        assert (kept_security(folder) is not None) is secure
        assert ("--secure" in how_to_start(folder)) is secure
        with pytest.raises(Refusal, match=sentence):
            make_plan(folder, count=3, racks=[], port=23_150, settings={}, secure=not secure)


def test_every_hop_is_secured(tmp_path: Path) -> None:
    plan = make_plan(str(tmp_path), count=2, racks=[], port=23_150, settings={"log.retention.hours": "1"}, secure=True)
    for broker in plan.brokers:
        assert broker.settings["listeners"].startswith("SASL_SSL://")
        assert broker.settings["ottla.grpc.protocol"] == "TLS" and "ottla.grpc.accept" not in broker.settings
        assert broker.settings["authorizer.class.name"] and broker.settings["super.users"] == "User:admin"
        assert broker.settings["log.retention.hours"] == "1"
        assert "password" not in " ".join(broker.arguments()), "the command line is for everybody to see"
