"""Keys and certificates out of the stores that Kafka's settings name: PEM files and texts, PKCS12.

What cannot be used is refused with a sentence that says what to do. Secrets are in none of them.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from ottla.config.listeners import ListenerSettings
from ottla.security.core.certificate_names import distinguished_name, subject_of

__all__ = ["BadStore", "KeyStore", "Leaf", "misfit", "read_key_store", "read_trust_store", "stores_of"]

JKS_MAGIC = b"\xfe\xed\xfe\xed"
DER_SEQUENCE = 0x30  # with which PKCS12 begins
CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
KEY = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.+?-----END \1PRIVATE KEY-----", re.DOTALL)
KEYTOOL = "keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12"
STORE_BYTES_MAX = 16 << 20


class BadStore(Exception):
    """One sentence for the person who set it."""


class Leaf(NamedTuple):
    """What people want to know of a certificate in use."""

    subject: str
    names: frozenset[str]
    """Alternative names."""
    serial: str
    """Hexadecimal, as openssl shows it."""
    not_before_s: float
    not_after_s: float

    @property
    def good_until(self) -> str:
        return _when(self.not_after_s)

    def problem(self, now_s: float) -> str | None:
        if now_s > self.not_after_s:
            return f"the certificate of {self.subject} expired at {_when(self.not_after_s)}"
        if now_s < self.not_before_s:
            return f"the certificate of {self.subject} is not valid before {_when(self.not_before_s)}"
        return None


def misfit(before: Leaf, after: Leaf, *, may_change_subject: bool, may_drop_names: bool) -> str | None:
    """Why a certificate cannot take another one's place: clients may have been told whom to expect."""
    if before.subject != after.subject and not may_change_subject:
        return f"its subject is {after.subject} instead of {before.subject} (ssl.allow.dn.changes)"
    if (lost := before.names - after.names) and not may_drop_names:
        return f"{', '.join(sorted(lost))} is no longer among its names (ssl.allow.san.changes)"
    return None


class KeyStore(NamedTuple):
    chain: bytes
    """PEM, the leaf first."""
    key: bytes
    """PEM, not encrypted: it must not leave the process."""
    leaf: Leaf

    def __repr__(self) -> str:
        return f"KeyStore({self.leaf})"


def stores_of(settings: ListenerSettings) -> list[str]:
    """The files to watch."""
    return [path for path in (settings["ssl.keystore.location"], settings["ssl.truststore.location"]) if path]


def read_key_store(settings: ListenerSettings) -> KeyStore:
    """Raises BadStore."""
    password = _password(settings["ssl.keystore.password"])
    if settings["ssl.keystore.key"]:
        _pem_only(settings, "ssl.keystore.type")
        if not settings["ssl.keystore.certificate.chain"]:
            raise BadStore("ssl.keystore.key is set, but ssl.keystore.certificate.chain is not: set both")
        texts = (settings["ssl.keystore.key"], settings["ssl.keystore.certificate.chain"])
        return _from_pem(_text(*texts), settings["ssl.key.password"], "ssl.keystore.key")
    path, data, is_pem = _store(settings, "ssl.keystore.location", "ssl.keystore.type")
    if is_pem:
        return _from_pem(data, settings["ssl.key.password"] or settings["ssl.keystore.password"], path)
    return _from_pkcs12(data, password, path)


def read_trust_store(settings: ListenerSettings) -> bytes:
    """Certificates in PEM, empty when no store is set. Raises BadStore."""
    if settings["ssl.truststore.certificates"]:
        _pem_only(settings, "ssl.truststore.type")
        return _trusted(_text(settings["ssl.truststore.certificates"]), "ssl.truststore.certificates")
    if not settings["ssl.truststore.location"]:
        return b""
    path, data, is_pem = _store(settings, "ssl.truststore.location", "ssl.truststore.type")
    if is_pem:
        return _trusted(data, path)
    _, own, others = _opened(data, _password(settings["ssl.truststore.password"]), path, "ssl.truststore.password")
    found = [each for each in (own, *others) if each is not None]
    if not found:
        raise BadStore(f"{path} holds no certificate")
    return b"".join(map(_pem, found))


def _text(*parts: str) -> bytes:
    """PEM in a setting is often written in one line, with \\n for its ends."""
    return "\n".join(part.replace("\\n", "\n") for part in parts).encode()


def _pem_only(settings: ListenerSettings, kind_setting: str) -> None:
    kind = settings[kind_setting].upper()
    if kind not in ("PEM", "JKS"):  # the default is JKS, which says nothing
        raise BadStore(f"PEM texts are set, but {kind_setting}={kind}: set {kind_setting}=PEM")


def _store(settings: ListenerSettings, place: str, kind_setting: str) -> tuple[str, bytes, bool]:
    """Path, content, and whether it is PEM; the other kind is PKCS12. As in Java, JKS (the default) also reads it."""
    path, kind = settings[place], settings[kind_setting].upper()
    data = _read(path)
    if data.startswith(JKS_MAGIC):
        raise BadStore(f"{path} is a JKS file, which only Java reads; convert it: {KEYTOOL.format(path=path)}")
    if kind not in ("PEM", "PKCS12", "JKS"):
        raise BadStore(f"{kind_setting}={kind} is not supported: PEM and PKCS12 are")
    is_pem, is_der = b"-----BEGIN " in data, data[0] == DER_SEQUENCE
    if not is_pem and not is_der:
        raise BadStore(f"{path} is neither PEM nor PKCS12: is it the right one?")
    if is_pem != (kind == "PEM"):
        found = "PEM" if is_pem else "PKCS12"
        raise BadStore(f"{path} is {found}, but {kind_setting} is {kind}: set {kind_setting}={found}")
    return path, data, is_pem


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise BadStore(f"cannot read {path}: {error.strerror}") from None
    if not data:
        raise BadStore(f"{path} is empty")
    if len(data) > STORE_BYTES_MAX:
        raise BadStore(f"{path} has more than {STORE_BYTES_MAX} bytes")
    return data


def _from_pem(data: bytes, password: str | None, origin: str) -> KeyStore:
    chain, found = CERTIFICATE.findall(data), KEY.search(data)
    if not chain or found is None:
        raise BadStore(f"{origin} holds no {'private key' if chain else 'certificate'}; it needs both, in PEM")
    key = found[0]
    if b"ENCRYPTED" in key:
        key = _decrypted(key, _password(password), origin)
    return KeyStore(b"\n".join(chain) + b"\n", key + b"\n", _leaf(_certificate(chain[0], origin)))


def _decrypted(key: bytes, password: bytes | None, origin: str) -> bytes:
    if password is None:
        raise BadStore(f"the private key of {origin} is encrypted: set ssl.key.password")
    try:
        return _key_pem(serialization.load_pem_private_key(key, password))
    except ValueError:
        raise BadStore(f"the private key of {origin} cannot be decrypted: is ssl.key.password right?") from None


def _from_pkcs12(data: bytes, password: bytes | None, path: str) -> KeyStore:
    key, own, others = _opened(data, password, path, "ssl.keystore.password")
    if key is None or own is None:
        raise BadStore(f"{path} holds no private key with its certificate")
    return KeyStore(b"".join(map(_pem, (own, *others))), _key_pem(key), _leaf(own))


def _opened(data: bytes, password: bytes | None, path: str, setting: str):  # type: ignore[no-untyped-def]
    try:
        return pkcs12.load_key_and_certificates(data, password)
    except ValueError:
        raise BadStore(f"{path} cannot be opened: is {setting} right, and the file whole?") from None


def _trusted(data: bytes, origin: str) -> bytes:
    found = CERTIFICATE.findall(data)
    if not found:
        raise BadStore(f"{origin} holds no certificate")
    for each in found:
        _certificate(each, origin)
    return b"\n".join(found) + b"\n"


def _certificate(pem: bytes, origin: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise BadStore(f"a certificate of {origin} cannot be read: {error}") from None


def _leaf(certificate: x509.Certificate) -> Leaf:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    return Leaf(
        subject=distinguished_name(subject_of(certificate.public_bytes(serialization.Encoding.DER))),
        names=frozenset(str(name.value) for name in names),
        serial=f"{certificate.serial_number:X}",
        not_before_s=certificate.not_valid_before_utc.timestamp(),
        not_after_s=certificate.not_valid_after_utc.timestamp(),
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: object) -> bytes:
    return key.private_bytes(  # type: ignore[attr-defined, no-any-return]
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _password(text: str | None) -> bytes | None:
    return text.encode() if text else None


def _when(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
