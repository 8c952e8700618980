"""SASL by hand: requests made of bytes, in any order, and what comes back."""

import socket
import ssl
import struct

from support.frames import framed
from support.raw_requests import header, text

__all__ = [
    "CLOSED",
    "Talk",
    "api_versions",
    "authenticate",
    "handshake",
    "metadata",
    "plain",
    "raw",
]

CLOSED = "closed"
READ_TIMEOUT_S = 15.0


def api_versions(version: int = 0) -> bytes:
    return framed(header(18, version))


def handshake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return framed(header(17, version) + text(mechanism))


def plain(user: str = "bob", password: str = "bob-secret", authorized: str = "") -> bytes:
    return f"{authorized}\0{user}\0{password}".encode()


def authenticate(data: bytes, version: int = 1) -> bytes:
    return framed(header(36, version) + struct.pack(">i", len(data)) + data)


def raw(data: bytes) -> bytes:
    return framed(data)


def metadata() -> bytes:
    return framed(header(3, 0) + struct.pack(">i", 0))


class Talk:
    """One connection. With a context it speaks TLS."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        plain_socket = socket.create_connection((host, port), READ_TIMEOUT_S)
        self.socket = context.wrap_socket(plain_socket, server_hostname="localhost") if context else plain_socket
        self.socket.settimeout(READ_TIMEOUT_S)

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, request: bytes) -> bytes | str:
        """The answer without its length, or CLOSED."""
        try:
            self.socket.sendall(request)
            return self.read()
        except (ConnectionError, ssl.SSLError):
            return CLOSED

    def read(self) -> bytes | str:
        try:
            size = self._exactly(4)
            return self._exactly(struct.unpack(">i", size)[0])
        except (ConnectionError, EOFError, ssl.SSLError):
            return CLOSED

    def code(self, request: bytes) -> int | str:
        """The error code, where it is the first thing behind the correlation id."""
        answer = self.ask(request)
        return answer if isinstance(answer, str) else int(struct.unpack_from(">h", answer, 4)[0])

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            if not (more := self.socket.recv(size - len(data))):
                raise EOFError
            data += more
        return data
