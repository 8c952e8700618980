"""Addresses in settings: listeners, protocol map, voters, bootstrap servers. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

__all__ = [
    "PORT_MAX",
    "PROTOCOLS",
    "BadEndpoint",
    "Endpoint",
    "Server",
    "Voter",
    "parse_listeners",
    "parse_protocol_map",
    "parse_servers",
    "parse_voters",
]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PORT_MAX = 65_535
LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)", re.ASCII)
SERVER = re.compile(r"\[?([0-9a-zA-Z\-%._:]+)\]?:([0-9]+)", re.ASCII)


class BadEndpoint(ValueError):
    """The text is Kafka's sentence; `hint` says what would be right."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener. An empty host is every address; port 0 is a free one."""

    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def has_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def is_secured(self) -> bool:
        return self.protocol != "PLAINTEXT"

    def with_host(self, host: str) -> "Endpoint":
        return replace(self, host=host)


class Server(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Voter:
    id: int
    host: str
    port: int


def parse_listeners(
    text: str, protocols: Mapping[str, str] | None = None, *, share_ports: bool = False
) -> tuple[Endpoint, ...]:
    """`NAME://host:port,…`. With `protocols` given, every name must be in it. Advertised ones may share a port."""
    failure = f"Error creating broker listeners from '{text}':"
    endpoints = []
    for part in _parts(text):
        match = LISTENER.fullmatch(part)
        if not match or not match[1]:
            hint = "; expected NAME://host:port, such as PLAINTEXT://127.0.0.1:9092"
            raise BadEndpoint(f"{failure} Unable to parse {part} to a broker endpoint", hint)
        if not 0 <= int(match[3]) <= PORT_MAX:
            hint = f"; a port is at most {PORT_MAX}"
            raise BadEndpoint(f"{failure} Unable to parse {part} to a broker endpoint", hint)
        name = match[1].upper()
        if protocols is not None and name not in protocols:
            raise BadEndpoint(f"{failure} No protocol for {name} in listener.security.protocol.map")
        endpoints.append(Endpoint(name, match[2], int(match[3]), (protocols or {}).get(name, "PLAINTEXT")))
    _distinct(text, endpoints, share_ports=share_ports)
    return tuple(endpoints)


def parse_protocol_map(text: str) -> dict[str, str]:
    protocols = {}
    for part in _parts(text):
        name, colon, protocol = part.partition(":")
        if not colon or protocol.strip().upper() not in PROTOCOLS:
            raise BadEndpoint(f"{part!r} is not NAME:PROTOCOL with a protocol of {', '.join(PROTOCOLS)}")
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def parse_voters(parts: Sequence[str]) -> tuple[Voter, ...]:
    voters = []
    for part in parts:
        number, at, server = part.partition("@")
        match = SERVER.fullmatch(server.strip())
        if not at or not number.strip().isdecimal() or not match or int(match[2]) > PORT_MAX:
            raise BadEndpoint(f"{part!r} is not id@host:port")
        voters.append(Voter(int(number), match[1], int(match[2])))
    if len({voter.id for voter in voters}) < len(voters):
        raise BadEndpoint("a voter's id appears twice")
    return tuple(voters)


def parse_servers(parts: Sequence[str]) -> tuple[Server, ...]:
    servers = []
    for part in parts:
        match = SERVER.fullmatch(part)
        if not match or int(match[2]) > PORT_MAX:
            raise BadEndpoint(f"{part!r} is not host:port")
        servers.append(Server(match[1], int(match[2])))
    return tuple(servers)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _distinct(text: str, endpoints: list[Endpoint], *, share_ports: bool) -> None:
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) < len(names):
        raise BadEndpoint(f"Each listener must have a different name, listeners: {text}")
    places = [(endpoint.host, endpoint.port) for endpoint in endpoints if endpoint.port]
    if len(set(places)) < len(places) and not share_ports:
        raise BadEndpoint(f"Each listener must have a different port, listeners: {text}")
