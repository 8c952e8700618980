"""Certificates of a fleet: a CA, and what it issues to nodes, operators and people. All of it offline.

A folder holds the CA (`ca.crt`, `ca.key`) and what was issued: `NAME.crt`, `NAME.key`, and `NAME.pem` with both, which
settings of Kafka call a keystore of type PEM. Keys are files for their owner only, and no file is ever replaced.

Whose a certificate is stands in a URI among its alternative names: ottla://CLUSTER-ID/ROLE/NAME (`core/identities.py`).
A node has one name more, which those who call nodes insist on: it tells a node's certificate from a person's.
"""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ottla.errors import Refusal
from ottla.ids import uuid_from_text
from ottla.security.core.identities import CA, NODES, Identity, identity_among, node_host

__all__ = ["Described", "Issued", "create_authority", "describe", "identity_of", "issue"]

CA_DAYS = 3650
CLOCK_SKEW = datetime.timedelta(minutes=5)  # of the machines that the files are copied to
RSA_BITS = 3072
KEYS = ("ec", "rsa")
FILE_BYTES_MAX = 1 << 20

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Issued(NamedTuple):
    """Paths."""

    certificate: str
    key: str
    keystore: str


class Described(NamedTuple):
    path: str
    subject: str
    identity: Identity | None
    names: tuple[str, ...]
    """DNS names and addresses."""
    serial: int
    not_before: datetime.datetime
    not_after: datetime.datetime
    fingerprint: str
    """SHA-256 of the certificate."""


def create_authority(folder: str, *, cluster_id: str, key: str = "ec", now: datetime.datetime) -> str:
    """The path of the new CA's certificate."""
    try:
        uuid_from_text(cluster_id)
    except ValueError:
        raise Refusal(f"{cluster_id!r} is not a cluster id of 22 characters; `ottla random-uuid` makes one") from None
    for path in (f"{folder}/ca.key", f"{folder}/ca.crt"):
        _refuse_existing(path)
    secret = _new_key(key)
    identity = Identity(cluster_id, CA, "ca")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Ottla CA of {cluster_id}")])
    builder = _builder(name, secret, now, CA_DAYS).issuer_name(name)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(certificates=True), critical=True)
    builder = builder.add_extension(_names(identity, ()), critical=False)
    certificate = builder.sign(secret, hashes.SHA256())
    _make_folder(folder)
    _write(f"{folder}/ca.key", _private(secret), secret=True)
    _write(f"{folder}/ca.crt", _public(certificate), secret=False)
    return f"{folder}/ca.crt"


def issue(
    folder: str, *, role: str, name: str, hosts: Sequence[str] = (), days: int, key: str = "ec", now: datetime.datetime
) -> Issued:
    """By the CA of the folder. `hosts` are DNS names and addresses at which clients reach a node."""
    authority, authority_key = _authority(folder)
    theirs = identity_of(authority)
    if theirs is None or theirs.role != CA:
        raise Refusal(f"{folder}/ca.crt is not a CA that `ottla pki init` made; use another folder")
    identity = Identity.checked(theirs.cluster_id, role, name)
    if hosts and role not in NODES:
        raise Refusal(f"--host is for nodes; a certificate for the role {role} has none")
    if now + datetime.timedelta(days=days) > authority.not_valid_after_utc:
        raise Refusal(
            f"{folder}/ca.crt ends on {authority.not_valid_after_utc:%Y-%m-%d}, before that; give less --days"
        )
    secret = _new_key(key)
    certificate = _leaf(identity, secret, hosts, days, now, authority, authority_key)
    stem = f"{folder}/{_stem(identity)}"
    issued = Issued(f"{stem}.crt", f"{stem}.key", f"{stem}.pem")
    for path in issued:
        _refuse_existing(path)
    _write(issued.key, _private(secret), secret=True)
    _write(issued.keystore, _private(secret) + _public(certificate), secret=True)
    _write(issued.certificate, _public(certificate), secret=False)
    return issued


def describe(path: str) -> list[Described]:
    """Every certificate in the file."""
    try:
        certificates = x509.load_pem_x509_certificates(_read(path))
    except ValueError:
        raise Refusal(f"{path} has no certificate in PEM, or a malformed one") from None
    return [_described(path, one) for one in certificates]


def identity_of(certificate: x509.Certificate) -> Identity | None:
    """None when it says nothing of Ottla, or several things."""
    return identity_among(_alternatives(certificate).get_values_for_type(x509.UniformResourceIdentifier))


def _described(path: str, certificate: x509.Certificate) -> Described:
    alternatives = _alternatives(certificate)
    addresses = map(str, alternatives.get_values_for_type(x509.IPAddress))
    return Described(
        path=path,
        subject=certificate.subject.rfc4514_string(),
        identity=identity_of(certificate),
        names=(*alternatives.get_values_for_type(x509.DNSName), *addresses),
        serial=certificate.serial_number,
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(),
    )


def _alternatives(certificate: x509.Certificate) -> x509.SubjectAlternativeName:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return x509.SubjectAlternativeName([])


def _leaf(
    identity: Identity,
    secret: PrivateKey,
    hosts: Sequence[str],
    days: int,
    now: datetime.datetime,
    authority: x509.Certificate,
    authority_key: PrivateKey,
) -> x509.Certificate:
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, identity.role),
            x509.NameAttribute(NameOID.COMMON_NAME, _stem(identity)),
        ]
    )
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if identity.role in NODES:
        uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = _builder(name, secret, now, days).issuer_name(authority.subject)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    builder = builder.add_extension(issuer_key, critical=False)
    return builder.add_extension(_names(identity, hosts), critical=False).sign(authority_key, hashes.SHA256())


def _builder(name: x509.Name, secret: PrivateKey, now: datetime.datetime, days: int) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(name).public_key(secret.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - CLOCK_SKEW).not_valid_after(now + datetime.timedelta(days=days))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(secret.public_key()), critical=False)


def _names(identity: Identity, hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(identity.uri)]
    if identity.role in NODES:
        names.append(x509.DNSName(node_host(identity.cluster_id)))
    return x509.SubjectAlternativeName([*names, *map(_host, hosts)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        pass
    if not text.isascii() or len(text) > 253 or not text.replace("-", "").replace(".", "").replace("*", "").isalnum():
        raise Refusal(f"--host {text}: neither a DNS name nor an address")
    return x509.DNSName(text)


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _stem(identity: Identity) -> str:
    return identity.name if identity.role == "person" else f"{identity.role}-{identity.name}"


# -- files


def _authority(folder: str) -> tuple[x509.Certificate, PrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate(_read(f"{folder}/ca.crt"))
        secret = serialization.load_pem_private_key(_read(f"{folder}/ca.key"), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise Refusal(f"the CA in {folder} cannot be read: ca.crt or ca.key is malformed or encrypted") from None
    if not isinstance(secret, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise Refusal(f"{folder}/ca.key is neither an RSA nor an elliptic-curve key")
    if secret.public_key() != certificate.public_key():
        raise Refusal(f"{folder}/ca.key is not the key of ca.crt")
    return certificate, secret


def _new_key(kind: str) -> PrivateKey:
    if kind not in KEYS:
        raise Refusal(f"--key {kind}: expected one of {', '.join(KEYS)}")
    return ec.generate_private_key(ec.SECP256R1()) if kind == "ec" else rsa.generate_private_key(65_537, RSA_BITS)


def _private(secret: PrivateKey) -> bytes:
    return secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _public(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        hint = "; make the CA with `ottla pki init`" if path.endswith("/ca.crt") else ""
        raise Refusal(f"{path} cannot be read: {error.strerror}{hint}") from None
    if len(data) > FILE_BYTES_MAX:
        raise Refusal(f"{path} is larger than any certificate")
    return data


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise Refusal(f"{folder} cannot be made: {error.strerror}") from None


def _write(path: str, data: bytes, *, secret: bool) -> None:
    """Whole or not at all, and never over another: a link fails where a file is, a rename would not."""
    draft = f"{path}.{os.getpid()}.tmp"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        raise _existing(path) from None
    except OSError as error:
        raise Refusal(f"{path} cannot be written: {error.strerror}") from None
    finally:
        if os.path.lexists(draft):
            os.remove(draft)


def _refuse_existing(path: str) -> None:
    """Before anything is written; what comes in between is met by the link."""
    if os.path.lexists(path):
        raise _existing(path)


def _existing(path: str) -> Refusal:
    return Refusal(f"{path} exists already, and is not replaced; move it away, or use another folder")
