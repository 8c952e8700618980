"""Kafka requests for people at a terminal: one at a time, to one broker or whichever answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.cli.kafka.connection import Connection, NoAccess
from ottla.cli.kafka.settings import ClientSettings
from ottla.config.endpoints import PORT_MAX
from ottla.errors import Code, Refusal

__all__ = ["Answered", "KafkaClient", "check"]

ANSWER_S_MAX = 10.0
METADATA, FIND_COORDINATOR = (3, 9), (10, 4)
Place = tuple[str, int]


class Answered(Refusal):
    """A broker answered with an error."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


class KafkaClient:
    """`bootstrap` is host:port, several with commas; one that answers is enough."""

    def __init__(
        self, bootstrap: str, settings: ClientSettings | None = None, *, answer_s_max: float = ANSWER_S_MAX
    ) -> None:
        self._answer_s_max = answer_s_max
        self._settings = settings or ClientSettings()
        self._bootstrap = [_place(text) for text in bootstrap.split(",")]
        self._connections: dict[Place, Connection] = {}
        self.brokers: dict[int, Place] = {}

    def metadata(self, topics: Sequence[str] = ()) -> Any:
        """Of these topics, without making them; fills `brokers`."""
        asked = {"topics": [{"name": name} for name in topics], "allow_auto_topic_creation": False}
        answer = self.ask_anyone(METADATA, asked)
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return answer

    def coordinator(self, group_id: str) -> int:
        answer = self.ask_anyone(FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": [group_id]})
        (found,) = answer.coordinators
        check(found.error_code, f"the coordinator of group {group_id}")
        return int(found.node_id)

    def ask(self, broker: int, api: tuple[int, int], fields: Mapping[str, Any]) -> Any:
        return self._ask(self.brokers[broker], api, fields)

    def ask_anyone(self, api: tuple[int, int], fields: Mapping[str, Any]) -> Any:
        """Where TLS or the login fails the others are not asked: they would say the same."""
        problem: Exception | None = None
        for place in dict.fromkeys([*self._bootstrap, *self.brokers.values()]):
            try:
                return self._ask(place, api, fields)
            except NoAccess:
                raise
            except Refusal as refused:
                problem = refused
        raise Refusal(f"no broker answers; {problem}")

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _ask(self, place: Place, api: tuple[int, int], fields: Mapping[str, Any]) -> Any:
        connection = self._connections.get(place)
        if connection is None:
            connection = Connection(place, self._settings, answer_s_max=self._answer_s_max)
            self._connections[place] = connection
        try:
            return connection.ask(api, fields)
        except Refusal:
            self._connections.pop(place).close()
            raise


def check(code: int, what: str, message: str | None = None) -> None:
    if code:
        raise Answered(f"{what}: {message or Code(code).name}", code)


def _place(text: str) -> Place:
    host, separator, port = text.strip().rpartition(":")
    if not separator or not (port.isascii() and port.isdecimal() and len(port) < 6 and int(port) <= PORT_MAX):
        raise Refusal(f"--bootstrap {text}: host:port is expected, such as 127.0.0.1:9092")
    return host.strip("[]"), int(port)
