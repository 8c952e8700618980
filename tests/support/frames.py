"""Kafka requests over a plain socket, for what no client library would send. Messages are kio's."""

import io
import socket
import ssl
import struct
from collections.abc import Iterable
from typing import Any

from kio.serial import entity_reader, entity_writer

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 20.0


def encode_request(request: Any, *, correlation_id: int = 1, client_id: str | None = "raw") -> bytes:
    """Header and body, without the length prefix."""
    header_type = request.__header_schema__
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    buffer = io.BytesIO()
    entity_writer(header_type)(buffer, header)
    entity_writer(type(request))(buffer, request)
    return buffer.getvalue()


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def decode_response(payload: bytes, response_type: Any) -> Any:
    """The body; fails when it does not end where the frame ends."""
    header_type = response_type.__header_schema__
    _, header_size = entity_reader(header_type)(payload, 0)
    body, body_size = entity_reader(response_type)(payload, header_size)
    assert header_size + body_size == len(payload), "bytes left over after the response"
    return body


class Connection:
    """One blocking connection. Use as a context manager."""

    def __init__(
        self,
        port: int,
        *,
        host: str = "127.0.0.1",
        read_timeout_s: float = READ_TIMEOUT_S,
        client_id: str | None = "raw",
        context: ssl.SSLContext | None = None,
    ) -> None:
        """By TLS with a context."""
        self._client_id = client_id
        self.socket = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
        self.socket.settimeout(read_timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname=host)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_in_pieces(self, data: bytes, pieces: Iterable[int]) -> None:
        position = 0
        for size in pieces:
            self.socket.sendall(data[position : position + size])
            position += size
        self.socket.sendall(data[position:])

    def read_frame(self) -> bytes:
        """The next response without its length; ConnectionError when the peer closed."""
        (size,) = struct.unpack(">i", self._read_exactly(4))
        return self._read_exactly(size)

    def closed_by_peer(self) -> bool:
        """Waits for the peer to close; whatever it still sends is ignored. False when it keeps the connection."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True

    def ask(self, request: Any, response_type: Any, *, correlation_id: int = 1) -> Any:
        self.send(framed(encode_request(request, correlation_id=correlation_id, client_id=self._client_id)))
        return decode_response(self.read_frame(), response_type)

    def _read_exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise ConnectionError(f"closed by the peer after {len(parts)} of {size} bytes")
            parts += part
        return bytes(parts)
