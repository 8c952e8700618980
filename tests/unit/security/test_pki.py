"""`ottla pki`: what it issues, and what it refuses."""

import datetime
import os
import ssl
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from ottla.cli.main import app
from ottla.errors import Refusal
from ottla.security import pki
from ottla.security.core.identities import Identity, node_host

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
NOW = datetime.datetime(2026, 11, 19, tzinfo=datetime.UTC)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    made = str(tmp_path / "pki")
    pki.create_authority(made, cluster_id=CLUSTER_ID, now=NOW)
    return made


def certificate(path: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(Path(path).read_bytes())


def usage(path: str) -> set[x509.ObjectIdentifier]:
    return set(certificate(path).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_the_ca_may_issue_and_nothing_it_issues_may(folder: str) -> None:
    made = pki.issue(folder, role="broker", name="1", hosts=["b.example.org", "192.0.2.1", "::1"], days=10, now=NOW)
    for path, may in ((f"{folder}/ca.crt", True), (made.certificate, False)):
        assert certificate(path).extensions.get_extension_for_class(x509.BasicConstraints).value.ca is may
        assert certificate(path).extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign is may
    certificate(made.certificate).verify_directly_issued_by(certificate(f"{folder}/ca.crt"))
    assert certificate(made.certificate).not_valid_after_utc == NOW + datetime.timedelta(days=10)


def test_openssl_verifies_what_is_issued(folder: str) -> None:
    made = pki.issue(folder, role="broker", name="1", hosts=["127.0.0.1"], days=10, now=pki_now())
    for purpose in ("sslserver", "sslclient"):
        command = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-verify_ip", "127.0.0.1"]
        subprocess.run([*command, "-CAfile", f"{folder}/ca.crt", made.certificate], check=True, capture_output=True)


def pki_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@pytest.mark.parametrize("role", ["broker", "controller", "operator", "person"])
def test_a_certificate_says_cluster_role_and_name(folder: str, role: str) -> None:
    made = pki.issue(folder, role=role, name="7", days=10, now=NOW)
    (told,) = pki.describe(made.certificate)
    assert told.identity == Identity(CLUSTER_ID, role, "7")
    is_node = role in ("broker", "controller")
    assert (ExtendedKeyUsageOID.SERVER_AUTH in usage(made.certificate)) is is_node
    assert ExtendedKeyUsageOID.CLIENT_AUTH in usage(made.certificate)
    assert told.names == ((node_host(CLUSTER_ID),) if is_node else ())


def test_keys_are_for_their_owner_and_kept_apart(folder: str) -> None:
    made = pki.issue(folder, role="person", name="alice", days=10, now=NOW)
    for path in (f"{folder}/ca.key", made.key, made.keystore):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for path in (f"{folder}/ca.crt", made.certificate):
        assert b"PRIVATE" not in Path(path).read_bytes()
    assert Path(made.keystore).read_bytes() == Path(made.key).read_bytes() + Path(made.certificate).read_bytes()
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(made.keystore)
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


@pytest.mark.parametrize("kind, bits", [("ec", 256), ("rsa", 3072)])
def test_keys_are_strong(tmp_path: Path, kind: str, bits: int) -> None:
    folder = str(tmp_path)
    pki.create_authority(folder, cluster_id=CLUSTER_ID, key=kind, now=NOW)
    made = pki.issue(folder, role="broker", name="1", days=10, key=kind, now=NOW)
    for path in (f"{folder}/ca.crt", made.certificate):
        key = certificate(path).public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey)
        assert key.key_size == bits


def test_nothing_is_replaced(folder: str) -> None:
    made = pki.issue(folder, role="broker", name="1", days=10, now=NOW)
    before = {path: Path(path).read_bytes() for path in (*made, f"{folder}/ca.crt", f"{folder}/ca.key")}
    with pytest.raises(Refusal, match=r"ca.key exists already, and is not replaced"):
        pki.create_authority(folder, cluster_id=CLUSTER_ID, now=NOW)
    for kept in made:
        for other in made:
            Path(other).unlink(missing_ok=True)
        Path(kept).write_bytes(before[kept])
        with pytest.raises(Refusal, match="exists already, and is not replaced"):
            pki.issue(folder, role="broker", name="1", days=10, now=NOW)
        assert [path for path in made if os.path.exists(path)] == [kept], "all or nothing"
    assert all(Path(path).read_bytes() == before[path] for path in before if path.startswith(f"{folder}/ca."))


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"role": "king"}, "role king: expected one of broker, controller, operator, person"),
        ({"role": "ca"}, "role ca: expected one of"),
        ({"name": "one"}, "the name of a broker is its node.id"),
        ({"role": "person", "name": "../x"}, "a name has 1 to 64"),
        ({"role": "person", "name": ""}, "a name has 1 to 64"),
        ({"role": "person", "hosts": ["x"]}, "--host is for nodes"),
        ({"hosts": ["a b"]}, "neither a DNS name nor an address"),
        ({"hosts": ["ottla://x"]}, "neither a DNS name nor an address"),
        ({"days": 4000}, "before that; give less --days"),
        ({"key": "dsa"}, "expected one of ec, rsa"),
    ],
)
def test_what_no_certificate_may_say_is_refused(folder: str, changes: dict[str, object], sentence: str) -> None:
    before = os.listdir(folder)
    with pytest.raises(Refusal, match=sentence):
        pki.issue(folder, **{"role": "broker", "name": "1", "days": 10, "now": NOW, **changes})  # type: ignore[arg-type]
    assert os.listdir(folder) == before


def test_a_ca_that_is_none_is_refused(folder: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="make the CA with `ottla pki init`"):
        pki.issue(str(tmp_path / "nowhere"), role="broker", name="1", days=10, now=NOW)
    key, leaf = Path(folder, "ca.key"), pki.issue(folder, role="broker", name="1", days=10, now=NOW)
    right = key.read_bytes()
    key.write_bytes(Path(leaf.key).read_bytes())
    with pytest.raises(Refusal, match=r"ca.key is not the key of ca.crt"):
        pki.issue(folder, role="broker", name="2", days=10, now=NOW)
    Path(folder, "ca.crt").write_bytes(Path(leaf.certificate).read_bytes())
    with pytest.raises(Refusal, match="is not a CA that `ottla pki init` made"):
        pki.issue(folder, role="broker", name="2", days=10, now=NOW)
    key.write_bytes(right[:80])
    with pytest.raises(Refusal, match="malformed or encrypted"):
        pki.issue(folder, role="broker", name="2", days=10, now=NOW)


def test_the_command_shows_what_there_is(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    pki.issue(folder, role="person", name="alice", days=10, now=NOW)
    assert run_command("pki", "show", f"{folder}/ca.crt", f"{folder}/alice.pem") == 0
    told = capsys.readouterr().out
    assert "person alice" in told and CLUSTER_ID in told and "2026-11-29" in told
    assert "PRIVATE" not in told
    assert run_command("pki", "show", f"{folder}/alice.key") == 1
    assert "has no certificate" in capsys.readouterr().err
    assert run_command("pki", "init", folder, "--cluster-id", "x") == 1
    assert "is not a cluster id of 22 characters" in capsys.readouterr().err


def run_command(*words: str) -> int:
    try:
        return app(list(words))
    except SystemExit as end:
        return int(end.code or 0)
