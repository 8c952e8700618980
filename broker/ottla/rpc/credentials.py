"""A node's certificate for gRPC, its key, and the CAs that it trusts: read, checked, watched and read again.

Files may change at any time, one by one or behind a symbolic link, as Kubernetes swaps them. What is new holds for new
connections; those that exist go on with what they began with. Files that do not fit each other or this node are refused
with a line in the log, and what was read before stays in force.
"""

import asyncio
import datetime
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import grpc
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from ottla.errors import Refusal
from ottla.security.core.identities import BROKER, Identity, node_host
from ottla.security.pki import identity_of
from ottla.security.renewal import Looks, state_of

__all__ = ["CredentialFiles", "Credentials", "WatchedCredentials", "of_node", "read_credentials"]

log = logging.getLogger("ottla")

FILE_BYTES_MAX = 1 << 20
CHAIN_MAX = 10  # certificates
LOOK_SECONDS = 1.0
BLOCK_BEGINS, CERTIFICATE_BEGINS = b"-----BEGIN", b"-----BEGIN CERTIFICATE"
PUBLIC, DER = serialization.PublicFormat.SubjectPublicKeyInfo, serialization.Encoding.DER


class CredentialFiles(NamedTuple):
    """All PEM. The key stands in the keystore with its certificates, unless it has a file of its own."""

    keystore: str
    truststore: str
    key: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path in (self.keystore, self.key, self.truststore) if path)


class Credentials(NamedTuple):
    """As read and found to fit."""

    identity: Identity
    chain: bytes
    key: bytes
    trusted: bytes
    serial: int
    not_after: datetime.datetime

    def __repr__(self) -> str:  # the key is a secret
        return f"Credentials({self.identity}, serial {self.serial:X}, until {self.not_after:%Y-%m-%d})"

    def for_server(self) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(self.key, self.chain)], self.trusted)

    def for_channel(self) -> grpc.ChannelCredentials:
        return grpc.ssl_channel_credentials(self.trusted, self.key, self.chain)

    @property
    def peer_name(self) -> str:
        """What the certificate of whoever is called must have: it is a node of the same cluster."""
        return node_host(self.identity.cluster_id)


def read_credentials(files: CredentialFiles, now: datetime.datetime) -> Credentials:
    """Refusal says which file does not fit, and why. Blocking."""
    stored = _read(files.keystore)
    chain = _certificates(files.keystore, stored)
    key_file = files.key or files.keystore
    key = _key(key_file, stored if files.key is None else _read(files.key))
    trusted = _certificates(files.truststore, _read(files.truststore))
    own = chain[0]
    if key.public_key().public_bytes(DER, PUBLIC) != own.public_key().public_bytes(DER, PUBLIC):
        raise Refusal(f"{key_file}: the key is not that of the certificate in {files.keystore}")
    if not own.not_valid_before_utc <= now <= own.not_valid_after_utc:
        span = f"{own.not_valid_before_utc:%Y-%m-%d %H:%M} to {own.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        raise Refusal(f"{files.keystore}: the certificate holds from {span}, not now")
    if not _is_issued(chain, trusted):
        raise Refusal(f"{files.keystore}: no CA in {files.truststore} has issued the certificate")
    identity = identity_of(own)
    if identity is None:
        raise Refusal(f"{files.keystore}: the certificate does not say whose it is; `ottla pki issue` makes one")
    return Credentials(
        identity=identity,
        chain=_pem(chain),
        key=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        trusted=_pem(trusted),
        serial=own.serial_number,
        not_after=own.not_valid_after_utc,
    )


class WatchedCredentials:
    """The newest that fitted. Refusal when the first do not. `misfit` says why an identity is not the holder's."""

    def __init__(self, files: CredentialFiles, misfit: Callable[[Identity], str | None] = lambda _: None) -> None:
        self._files = files
        self._misfit = misfit
        self._looks = Looks(state_of(files.paths))
        self.current = self._read_own()
        self.loaded_at = _now()
        self.refusals = 0
        self._task: asyncio.Task[None] | None = None

    def server_credentials(self) -> grpc.ServerCredentials:
        """Asks for a client's certificate, and takes the newest of its own at each handshake."""
        told = self.current

        def newest() -> grpc.ServerCertificateConfiguration | None:
            """On a thread of gRPC's; None when nothing is new."""
            nonlocal told
            current = self.current
            if current is told:
                return None
            told = current
            return current.for_server()

        fetch = cast(Callable[[], grpc.ServerCertificateConfiguration], newest)  # the stubs forget the None
        return grpc.dynamic_ssl_server_credentials(told.for_server(), fetch, require_client_authentication=True)

    def watch(self) -> None:
        """On the loop that is running, until `close`."""
        self._task = asyncio.create_task(self._watch(), name="certificates")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Read the files again if they have changed, and those that were refused once in a while."""
        if not self._looks.is_due(await asyncio.to_thread(state_of, self._files.paths)):
            return
        try:
            found = await asyncio.to_thread(self._read_following)
        except Refusal as refusal:
            if self._looks.refused(str(refusal)):
                self.refusals += 1
                log.error("new certificate for gRPC refused, the one before stays: %s", refusal)
            return
        self._looks.taken()
        if found != self.current:
            self.current, self.loaded_at = found, _now()
            log.info("gRPC goes on with a new certificate: %s", found)

    def _read_following(self) -> Credentials:
        found = self._read_own()
        if found.identity.cluster_id != self.current.identity.cluster_id:
            raise Refusal(f"{self._files.keystore}: the certificate is of another cluster")
        return found

    def _read_own(self) -> Credentials:
        found = read_credentials(self._files, _now())
        if (problem := self._misfit(found.identity)) is not None:
            raise Refusal(f"{self._files.keystore}: {problem}")
        return found


def of_node(node_id: int, *, is_broker: bool) -> Callable[[Identity], str | None]:
    """What a node's own certificate must say."""

    def misfit(identity: Identity) -> str | None:
        if identity.node_id != node_id:
            return f"the certificate is of {identity}; this is node {node_id}"
        if is_broker and identity.role != BROKER:
            return f"the certificate has the role {identity.role}; a broker needs {BROKER}"
        return None

    return misfit


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise Refusal(f"{path} is larger than any certificate")
    if BLOCK_BEGINS not in data:
        raise Refusal(f"{path} is not PEM; `openssl pkcs12 -nodes -in FILE -out FILE.pem` makes it of PKCS12")
    return data


def _certificates(path: str, data: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(b"".join(_blocks(data, of_certificates=True)))
    except ValueError:
        raise Refusal(f"{path} has no certificate, or a malformed one") from None


def _key(path: str, data: bytes) -> PrivateKeyTypes:
    """The first block that is no certificate."""
    try:
        return serialization.load_pem_private_key(_blocks(data, of_certificates=False)[0], password=None)
    except IndexError:
        raise Refusal(f"{path} has no private key") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise Refusal(f"{path}: the private key is malformed, or needs a password") from None


def _blocks(data: bytes, *, of_certificates: bool) -> list[bytes]:
    found = [BLOCK_BEGINS + block for block in data.split(BLOCK_BEGINS)[1:]]
    return [block for block in found if block.startswith(CERTIFICATE_BEGINS) is of_certificates]


def _is_issued(chain: Sequence[x509.Certificate], trusted: Sequence[x509.Certificate]) -> bool:
    """Each certificate of the chain by the next one, up to one that a trusted CA has issued, or that is trusted."""
    for number, certificate in enumerate(chain[:CHAIN_MAX]):
        if certificate in trusted or any(_issues(authority, certificate) for authority in trusted):
            return True
        if number + 1 == len(chain) or not _issues(chain[number + 1], certificate):
            return False
    return False


def _issues(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _pem(certificates: Sequence[x509.Certificate]) -> bytes:
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)
