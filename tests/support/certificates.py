"""A test's own certificate authorities, and what they issue."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

__all__ = ["Authority", "Issued", "common_name"]

PEM = serialization.Encoding.PEM
PKCS8 = serialization.PrivateFormat.PKCS8
DAY = timedelta(days=1)
LOCAL = ("localhost", "127.0.0.1")


def common_name(text: str, *more: x509.NameAttribute) -> x509.Name:
    """`more` stands before it."""
    return x509.Name([*more, x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Issued:
    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self.certificate = certificate

    @property
    def chain(self) -> str:
        return self.certificate.public_bytes(PEM).decode()

    def key(self, password: str | None = None) -> str:
        hidden = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        return self._key.private_bytes(PEM, PKCS8, hidden).decode()

    def write(self, folder: Path, name: str, *, password: str | None = None) -> Path:
        """Key and certificate in one PEM file."""
        path = folder / f"{name}.pem"
        path.write_text(self.key(password) + self.chain)
        return path

    def pkcs12(self, password: str) -> bytes:
        hidden = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"it", self._key, self.certificate, None, hidden)


class Authority:
    def __init__(self, name: str = "Test CA") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = common_name(name)
        self.certificate = _signed(self._name, self._name, self._key.public_key(), self._key, days=(-1, 10), ca=True)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(PEM).decode()

    def write(self, folder: Path, name: str = "ca") -> Path:
        path = folder / f"{name}.pem"
        path.write_text(self.pem)
        return path

    def issue(
        self, name: str | x509.Name, *, days: tuple[float, float] = (-1, 5), hosts: Sequence[str] = LOCAL
    ) -> Issued:
        """Valid from and until so many days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = common_name(name) if isinstance(name, str) else name
        return Issued(key, _signed(subject, self._name, key.public_key(), self._key, days=days, hosts=hosts))

    @classmethod
    def in_folder(cls, folder: Path, *, broker: str = "broker") -> Self:
        """With `ca.pem` and a broker's `broker.pem` written there."""
        authority = cls()
        authority.write(folder)
        authority.issue(broker).write(folder, "broker")
        return authority


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    by: ec.EllipticCurvePrivateKey,
    *,
    days: tuple[float, float],
    hosts: Sequence[str] = (),
    ca: bool = False,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * DAY)
        .not_valid_after(now + days[1] * DAY)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
    return builder.sign(by, hashes.SHA256())


def _host(text: str) -> x509.GeneralName:
    return x509.IPAddress(ip_address(text)) if text[0].isdecimal() else x509.DNSName(text)
