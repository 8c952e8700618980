"""Key and trust stores: what is read under which settings, and the sentences for what is not."""

import contextlib
import os
import ssl
import subprocess
from pathlib import Path

import pytest
from ottla.config import BROKER, Endpoint
from ottla.config.listeners import ListenerSettings
from ottla.errors import Refusal
from ottla.security.certificates import BadStore, misfit, read_key_store, read_trust_store
from ottla.security.core.cipher_names import TLS_1_2, TLS_1_3, BadCiphers, ciphers_of
from ottla.security.tls import load_identity
from support.certificates import Authority, Issued

SECRET = "pass-word"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def issued(authority: Authority) -> Issued:
    return authority.issue("broker")


def settings(**given: object) -> ListenerSettings:
    values = {name: setting.default for name, setting in BROKER.items()}
    return ListenerSettings(
        Endpoint("TLS", "a", 1, "SSL"), values | {name.replace("_", "."): value for name, value in given.items()}
    )


def stored(path: Path, content: str | bytes, **more: object) -> ListenerSettings:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return settings(ssl_keystore_location=str(path), **more)


def test_pem_file(tmp_path: Path, issued: Issued, authority: Authority) -> None:
    """In any order, with text between, and with the CA behind the leaf."""
    content = f"subject=x\n{issued.chain}{authority.pem}\nkey\n{issued.key()}"
    store = read_key_store(stored(tmp_path / "s", content, ssl_keystore_type="PEM"))
    assert store.chain.count(b"BEGIN CERTIFICATE") == 2 and store.leaf.subject == "CN=broker"
    assert store.leaf.serial == f"{issued.certificate.serial_number:X}"
    assert store.leaf.names == {"localhost", "127.0.0.1"}
    assert "PRIVATE KEY" not in repr(store)


def test_pem_texts(issued: Issued) -> None:
    """Written in several lines or in one; the type need not be given."""
    for end in ("\n", "\\n"):
        key, chain = issued.key().replace("\n", end), issued.chain.replace("\n", end)
        store = read_key_store(settings(ssl_keystore_key=key, ssl_keystore_certificate_chain=chain))
        assert store.leaf.subject == "CN=broker"


def test_encrypted_key(tmp_path: Path, issued: Issued) -> None:
    content = issued.key(SECRET) + issued.chain
    pem = {"ssl_keystore_type": "PEM"}
    assert b"ENCRYPTED" not in read_key_store(stored(tmp_path / "s", content, ssl_key_password=SECRET, **pem)).key
    with pytest.raises(BadStore, match=r"is encrypted: set ssl\.key\.password"):
        read_key_store(stored(tmp_path / "s", content, **pem))
    with pytest.raises(BadStore, match=r"cannot be decrypted: is ssl\.key\.password right\?"):
        read_key_store(stored(tmp_path / "s", content, ssl_key_password="wrong", **pem))


@pytest.mark.parametrize("kind", ["PKCS12", "JKS", "pkcs12"])
def test_pkcs12(tmp_path: Path, issued: Issued, kind: str) -> None:
    """Also under JKS, Kafka's default: Java reads both under either name."""
    store = stored(tmp_path / "s", issued.pkcs12(SECRET), ssl_keystore_type=kind, ssl_keystore_password=SECRET)
    assert read_key_store(store).leaf.subject == "CN=broker"
    assert load_identity(store).leaf.subject == "CN=broker"
    with pytest.raises(BadStore, match=r"cannot be opened: is ssl\.keystore\.password right"):
        read_key_store(stored(tmp_path / "s", issued.pkcs12(SECRET), ssl_keystore_type=kind))


def test_stores_of_keytool(tmp_path: Path, authority: Authority) -> None:
    """A trust store without a key, as `keytool -importcert` makes it; and a real JKS file."""
    authority.write(tmp_path)
    for kind in ("PKCS12", "JKS"):
        subprocess.run(
            ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", f"{tmp_path}/ca.pem", "-keystore",
             f"{tmp_path}/{kind}", "-storetype", kind, "-storepass", SECRET], check=True, capture_output=True,
        )  # fmt: skip
    trust = settings(ssl_truststore_location=f"{tmp_path}/PKCS12", ssl_truststore_password=SECRET)
    assert read_trust_store(trust).decode() == authority.pem
    with pytest.raises(BadStore, match=r"is a JKS file, .*: keytool -importkeystore -srckeystore \S+/JKS -dest"):
        read_trust_store(settings(ssl_truststore_location=f"{tmp_path}/JKS"))


@pytest.mark.parametrize(
    ("content", "more", "sentence"),
    [
        ("", {}, "is empty"),
        ("nonsense", {}, r"is neither PEM nor PKCS12: is it the right one\?"),
        ("nonsense", {"ssl_keystore_type": "PEM"}, "is neither PEM nor PKCS12"),
        ("-----BEGIN X-----", {}, r"is PEM, but ssl\.keystore\.type is JKS: set ssl\.keystore\.type=PEM"),
        (b"0\x82", {"ssl_keystore_type": "PEM"}, r"is PKCS12, but ssl\.keystore\.type is PEM: set"),
        (b"0\x82", {"ssl_keystore_type": "BKS"}, r"ssl\.keystore\.type=BKS is not supported: PEM and PKCS12 are"),
        (b"0\x82", {"ssl_keystore_type": "PKCS12"}, "cannot be opened"),
        ("-----BEGIN X-----", {"ssl_keystore_type": "PEM"}, "holds no certificate; it needs both, in PEM"),
    ],
)
def test_what_is_no_store(tmp_path: Path, content: str | bytes, more: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadStore, match=sentence):
        read_key_store(stored(tmp_path / "s", content, **more))


def test_what_is_not_whole(tmp_path: Path, issued: Issued, authority: Authority) -> None:
    pem = {"ssl_keystore_type": "PEM"}
    with pytest.raises(BadStore, match="holds no private key"):
        read_key_store(stored(tmp_path / "s", issued.chain, **pem))
    with pytest.raises(BadStore, match=r"ssl\.keystore\.certificate\.chain is not: set both"):
        read_key_store(settings(ssl_keystore_key=issued.key()))
    with pytest.raises(BadStore, match="cannot read /nowhere: No such file"):
        read_key_store(settings(ssl_keystore_location="/nowhere"))
    with pytest.raises(Refusal, match="TLS://a:1: the private key does not belong to the certificate of CN=broker"):
        load_identity(stored(tmp_path / "s", authority.issue("x").key() + issued.chain, **pem))
    expired = authority.issue("broker", days=(-3, -2))
    with pytest.raises(Refusal, match=r"the certificate of CN=broker expired at .* UTC; put a valid one in its place"):
        load_identity(stored(tmp_path / "s", expired.key() + expired.chain, **pem))


def test_no_file_and_no_descriptor_is_left(tmp_path: Path, issued: Issued) -> None:
    given = stored(tmp_path / "s", issued.key() + issued.chain, ssl_keystore_type="PEM")
    load_identity(given)
    before = os.listdir("/proc/self/fd")
    for _ in range(5):
        load_identity(given)
    assert len(os.listdir("/proc/self/fd")) <= len(before)


def test_what_takes_the_place_of_another(authority: Authority, tmp_path: Path) -> None:
    def leaf(name: str, *hosts: str):  # type: ignore[no-untyped-def]
        made = authority.issue(name, hosts=hosts)
        return read_key_store(stored(tmp_path / "s", made.key() + made.chain, ssl_keystore_type="PEM")).leaf

    before = leaf("broker", "a", "b")
    strict = {"may_change_subject": False, "may_drop_names": False}
    assert misfit(before, leaf("broker", "b", "a", "c"), **strict) is None
    assert misfit(before, leaf("broker", "a"), **strict) == "b is no longer among its names (ssl.allow.san.changes)"
    assert misfit(before, leaf("other", "a", "b"), **strict) == (
        "its subject is CN=other instead of CN=broker (ssl.allow.dn.changes)"
    )
    assert misfit(before, leaf("other", "x"), may_change_subject=True, may_drop_names=True) is None


def test_ciphers(tmp_path: Path, issued: Issued) -> None:
    """All that are known are OpenSSL's, too; what would not be kept to is refused."""
    pem = {"ssl_keystore_type": "PEM"}
    content = issued.key() + issued.chain
    for name in TLS_1_2:
        identity = load_identity(stored(tmp_path / "s", content, ssl_cipher_suites=(name,), **pem))
        assert [each["name"] for each in identity.context.get_ciphers() if not each["name"].startswith("TLS_")] == [
            TLS_1_2[name]
        ]
        assert identity.context.maximum_version.name == "TLSv1_2"
    only_new = load_identity(stored(tmp_path / "s", content, ssl_cipher_suites=TLS_1_3, **pem))
    assert only_new.context.minimum_version.name == "TLSv1_3"
    with pytest.raises(BadCiphers, match="NULL is unknown; known are TLS_AES_256"):
        ciphers_of(["NULL"])
    with pytest.raises(BadCiphers, match=r"those of TLS 1\.3 cannot be chosen from here; name all of"):
        ciphers_of(["TLS_AES_128_GCM_SHA256"])
    with pytest.raises(Refusal, match=r"has none for the versions of ssl\.enabled\.protocols"):
        load_identity(
            stored(tmp_path / "s", content, ssl_cipher_suites=TLS_1_3, ssl_enabled_protocols=("TLSv1.2",), **pem)
        )


@pytest.mark.parametrize("asked", ["requested", "required"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_no_ticket_spares_a_client_its_certificate(tmp_path: Path, asked: str, version: ssl.TLSVersion) -> None:
    authority = Authority.in_folder(tmp_path)
    given = {
        "ssl_truststore_location": str(tmp_path / "ca.pem"),
        "ssl_truststore_type": "PEM",
        "ssl_client_auth": asked,
    }
    content = (tmp_path / "broker.pem").read_text()
    server = load_identity(stored(tmp_path / "s", content, ssl_keystore_type="PEM", **given)).context
    client = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    client.load_cert_chain(authority.issue("alice").write(tmp_path, "alice"))
    client.maximum_version = version
    first, _ = shaken(client, server)
    assert first.session is not None and not first.session.has_ticket
    if version is ssl.TLSVersion.TLSv1_3:
        _, again = shaken(client, server, first.session)
        assert not again.session_reused


def shaken(
    client: ssl.SSLContext, server: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends after the handshake, and what the server says behind it."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(down, up, server_hostname="localhost", session=session),
        server.wrap_bio(up, down, server_side=True),
    )
    for _ in range(3):
        for end in ends:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    with contextlib.suppress(ssl.SSLWantReadError):
        ends[0].read(1)
    return ends
