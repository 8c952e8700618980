"""Kafka requests for people at a terminal: one at a time, over plain connections, in our own codecs."""

import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.config.endpoints import PORT_MAX
from ottla.errors import Code, Refusal
from ottla.wire.reader import Malformed, reader_of
from ottla.wire.schema import request_struct, response_struct
from ottla.wire.writer import writer_of

__all__ = ["KafkaClient", "check"]

ANSWER_S_MAX = 10.0
FRAME_BYTES_MAX = 100 * 1024 * 1024
METADATA, FIND_COORDINATOR = (3, 9), (10, 4)
Place = tuple[str, int]


class KafkaClient:
    """`bootstrap` is host:port, several with commas; one that answers is enough."""

    def __init__(self, bootstrap: str, *, answer_s_max: float = ANSWER_S_MAX) -> None:
        self._answer_s_max = answer_s_max
        self._bootstrap = [_place(text) for text in bootstrap.split(",")]
        self._connections: dict[Place, socket.socket] = {}
        self.brokers: dict[int, Place] = {}

    def metadata(self, topics: Sequence[str] = ()) -> Any:
        """Of these topics, without making them; fills `brokers`."""
        asked = {"topics": [{"name": name} for name in topics], "allow_auto_topic_creation": False}
        answer = self._ask_anyone(METADATA, asked)
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return answer

    def coordinator(self, group_id: str) -> int:
        answer = self._ask_anyone(FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": [group_id]})
        (found,) = answer.coordinators
        check(found.error_code, f"the coordinator of group {group_id}")
        return int(found.node_id)

    def ask(self, broker: int, api: tuple[int, int], fields: Mapping[str, Any]) -> Any:
        return self._ask(self.brokers[broker], api, fields)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _ask_anyone(self, api: tuple[int, int], fields: Mapping[str, Any]) -> Any:
        problem: Exception | None = None
        for place in dict.fromkeys([*self._bootstrap, *self.brokers.values()]):
            try:
                return self._ask(place, api, fields)
            except Refusal as refused:
                problem = refused
        raise Refusal(f"no broker answers; {problem}")

    def _ask(self, place: Place, api: tuple[int, int], fields: Mapping[str, Any]) -> Any:
        try:
            connection = self._connections.get(place)
            if connection is None:
                connection = self._connections[place] = socket.create_connection(place, self._answer_s_max)
            connection.sendall(_request(api, fields))
            return _response(api, _frame(connection))
        except (OSError, Malformed, struct.error, IndexError) as error:
            self._connections.pop(place, None)
            raise Refusal(f"{place[0]}:{place[1]}: {error}") from None


def check(code: int, what: str) -> None:
    if code:
        raise Refusal(f"{what}: {Code(code).name}")


def _place(text: str) -> Place:
    host, separator, port = text.strip().rpartition(":")
    if not separator or not (port.isascii() and port.isdecimal() and len(port) < 6 and int(port) <= PORT_MAX):
        raise Refusal(f"--bootstrap {text}: host:port is expected, such as 127.0.0.1:9092")
    return host.strip("[]"), int(port)


def _request(api: tuple[int, int], fields: Mapping[str, Any]) -> bytes:
    layout = request_struct(*api)
    name = b"ottla"
    parts = [struct.pack(">hhih", *api, 0, len(name)) + name + (b"\0" if layout.flexible else b"")]
    writer_of(layout)(parts, fields)
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def _response(api: tuple[int, int], frame: bytes) -> Any:
    layout = response_struct(*api)
    return reader_of(layout, layout)(memoryview(frame), 5 if layout.flexible else 4)[0]


def _frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    if not 0 <= size <= FRAME_BYTES_MAX:
        raise Malformed(f"an answer of {size} bytes: is this a Kafka port without TLS?")
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            raise ConnectionError("the broker closed the connection")
        data += part
    return bytes(data)
