"""One connection to a broker: TLS, the login, requests one at a time. What fails says what, where, and what to do."""

import base64
import contextlib
import secrets
import socket
import ssl
import struct
from collections.abc import Mapping
from typing import Any

from ottla.cli.kafka.scram import NotTheServer, messages
from ottla.cli.kafka.settings import PLAIN, ClientSettings
from ottla.cli.port_probes import takes_tls
from ottla.errors import Code, Refusal
from ottla.wire.reader import Malformed, reader_of
from ottla.wire.schema import request_struct, response_struct
from ottla.wire.writer import writer_of

__all__ = ["Connection", "NoAccess", "request_bytes", "response"]

FRAME_BYTES_MAX = 100 * 1024 * 1024
NONCE_BYTES = 24
HANDSHAKE, AUTHENTICATE = (17, 1), (36, 2)
EXPIRED, OTHER_HOSTS = 10, (62, 64)  # OpenSSL's numbers of what is wrong with a certificate
Place = tuple[str, int]


class NoAccess(Refusal):
    """The broker is there, and another one would say the same: TLS or the login failed."""


class Connection:
    """Refusal when the broker cannot be reached or does not answer in time; NoAccess is one of them."""

    def __init__(self, place: Place, settings: ClientSettings, *, answer_s_max: float) -> None:
        self._settings = settings
        self._place = place
        self._where = f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"
        try:
            self._socket = socket.create_connection(place, answer_s_max)
        except OSError as error:
            hint = "; is a broker running there?" if isinstance(error, ConnectionRefusedError) else ""
            raise Refusal(f"{self._where}: {_reason(error)}{hint}") from None
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def ask(self, api: tuple[int, int], fields: Mapping[str, Any]) -> Any:
        try:
            self._socket.sendall(request_bytes(api, fields))
            return response(api, self._frame())
        except (OSError, Malformed, struct.error, IndexError) as error:
            raise self._failed(error) from None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def _open(self) -> None:
        if self._settings.by_tls:
            self._begin_tls()
        if self._settings.by_login:
            self._log_in()

    def _begin_tls(self) -> None:
        context = _tls_context(self._settings)
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=self._place[0])
        except ssl.SSLCertVerificationError as error:
            raise NoAccess(f"{self._where}: {self._distrust(error)}") from None
        except ssl.SSLError as error:
            raise NoAccess(f"{self._where}: {self._tls_failure(error)}") from None
        except OSError as error:
            raise NoAccess(f"{self._where}: {self._no_tls(_reason(error))}") from None

    def _distrust(self, error: ssl.SSLCertVerificationError) -> str:
        if error.verify_code in OTHER_HOSTS:
            return (
                f"the server's certificate is not for {self._place[0]}: reach it by a name that the certificate has, "
                "or set ssl.endpoint.identification.algorithm=none"
            )
        if error.verify_code == EXPIRED:
            return "the server's certificate has expired"
        known = self._settings.ca or "the CAs of this machine (ssl.ca.location names a file)"
        return f"the server's certificate is not by the CA in {known} ({error.verify_message})"

    def _tls_failure(self, error: ssl.SSLError) -> str:
        if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE") or isinstance(error, ssl.SSLEOFError):
            return self._no_tls("it does not answer with TLS")
        return f"TLS failed: {_reason(error)}"

    def _no_tls(self, reason: str) -> str:
        plain = "SASL_PLAINTEXT" if self._settings.by_login else "PLAINTEXT"
        return f"no TLS with this port ({reason}); if it has none: security.protocol={plain}"

    def _log_in(self) -> None:
        settings = self._settings
        offered = self.ask(HANDSHAKE, {"mechanism": settings.mechanism})
        if offered.error_code:
            known = ", ".join(offered.mechanisms or ()) or "none"
            raise NoAccess(f"{self._where} takes no login by {settings.mechanism}; it takes {known} (sasl.mechanism)")
        if settings.mechanism == PLAIN:
            self._say(f"\0{settings.user}\0{settings.password}".encode())
            return
        nonce = base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
        talk = messages(settings.mechanism, settings.user, settings.password, nonce=nonce)
        try:
            message = next(talk)
            while True:
                message = talk.send(self._say(message))
        except StopIteration:
            return
        except NotTheServer as error:
            raise NoAccess(f"{self._where} is not the fleet of {settings.user}: {error}") from None

    def _say(self, message: bytes) -> bytes:
        answer = self.ask(AUTHENTICATE, {"auth_bytes": message})
        if answer.error_code == Code.sasl_authentication_failed:
            reason = "wrong password or unknown user"
            raise NoAccess(f"{self._where} refused the login of {self._settings.user}: {reason}")
        if answer.error_code:
            raise NoAccess(f"{self._where} refused the login: {answer.error_message or Code(answer.error_code).name}")
        return bytes(answer.auth_bytes)

    def _failed(self, error: Exception) -> Refusal:
        """Why an answer did not come, as far as it can be found out."""
        settings = self._settings
        if isinstance(error, ssl.SSLError) and "CERTIFICATE_REQUIRED" in (error.reason or ""):
            return NoAccess(f"{self._where} wants a certificate of yours: ssl.certificate.location")
        if isinstance(error, ssl.SSLError):
            return NoAccess(f"{self._where}: TLS failed: {_reason(error)}")
        if not settings.by_tls and not isinstance(error, TimeoutError) and takes_tls(self._where):
            wanted = "SASL_SSL" if settings.by_login else "SASL_SSL (or SSL)"
            return NoAccess(f"{self._where}: this port wants TLS: security.protocol={wanted} in --command-config")
        if not settings.by_login and isinstance(error, ConnectionError):
            wanted = "SASL_SSL" if settings.by_tls else "SASL_PLAINTEXT"
            hint = f"it may want a login: security.protocol={wanted} in --command-config"
            return Refusal(f"{self._where}: {_reason(error)}; {hint}")
        return Refusal(f"{self._where}: {_reason(error)}")

    def _frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        if not 0 <= size <= FRAME_BYTES_MAX:
            raise Malformed(f"an answer of {size} bytes: is this a port for Kafka clients?")
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return bytes(data)


def request_bytes(api: tuple[int, int], fields: Mapping[str, Any]) -> bytes:
    layout = request_struct(*api)
    name = b"ottla"
    parts = [struct.pack(">hhih", *api, 0, len(name)) + name + (b"\0" if layout.flexible else b"")]
    writer_of(layout)(parts, fields)
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def response(api: tuple[int, int], frame: bytes) -> Any:
    layout = response_struct(*api)
    return reader_of(layout, layout)(memoryview(frame), 5 if layout.flexible else 4)[0]


def _tls_context(settings: ClientSettings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = settings.checks_host and settings.checks_certificate
    context.verify_mode = ssl.CERT_REQUIRED if settings.checks_certificate else ssl.CERT_NONE
    password = settings.key_password
    for what, path in (("CA", settings.ca), ("certificate", settings.certificate)):
        if path is None:
            continue
        try:
            if what == "CA":
                context.load_verify_locations(path)
            else:
                context.load_cert_chain(path, settings.key, lambda: password or "")
        except OSError as error:  # ssl's own are among them
            raise NoAccess(f"{settings.source}: the {what} in {path} cannot be read: {_reason(error)}") from None
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    if isinstance(error, TimeoutError):
        return "no answer in time"
    strerror = getattr(error, "strerror", None)
    return str(strerror).lower() if strerror else str(error)
