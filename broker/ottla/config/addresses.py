"""The addresses of a node, from its settings: listeners, advertised listeners, the quorum's voters. Pure."""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, NamedTuple, TypeVar

from ottla.config.endpoints import (
    BadEndpoint,
    Endpoint,
    Server,
    Voter,
    parse_listeners,
    parse_protocol_map,
    parse_servers,
    parse_voters,
)
from ottla.errors import Refusal

__all__ = ["Addresses", "addresses"]


Read = TypeVar("Read")
EVERY_ADDRESS = ("", "0.0.0.0", "::")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Addresses(NamedTuple):
    listeners: tuple[Endpoint, ...]
    advertised: tuple[Endpoint, ...]
    controller_listeners: tuple[Endpoint, ...]
    host: str
    """Where other nodes reach this one, unless controller.quorum.voters says it."""
    voters: tuple[Voter, ...]
    quorum_servers: tuple[str, ...]
    """host:port of other nodes, which are asked for the voters; none where controller.quorum.voters names them."""


def addresses(
    texts: Mapping[str, str], origins: Mapping[str, str], values: Mapping[str, Any], *, hostname: str
) -> Addresses:
    """`texts` holds what was given, `values` all values, `origins` where each was given."""

    def read(name: str, reader: Callable[..., Read], *more: object, **options: bool) -> Read:
        try:
            return reader(values[name] or "", *more, **options)
        except BadEndpoint as refusal:
            raise Refusal(
                f"{origins.get(name, 'default')}: {name}={texts.get(name, values[name])}: {refusal}{refusal.hint}"
            ) from None

    controllers = _names(values["controller.listener.names"])
    protocols = read("listener.security.protocol.map", parse_protocol_map)
    if "listener.security.protocol.map" not in texts:  # as Kafka: a controller's listener needs no entry
        protocols = dict.fromkeys(controllers, "PLAINTEXT") | protocols
    listeners = read("listeners", parse_listeners, protocols)
    all_advertised = read("advertised.listeners", parse_listeners, protocols, share_ports=True)
    clients = tuple(endpoint for endpoint in listeners if endpoint.name not in controllers)
    advertised = tuple(endpoint for endpoint in all_advertised if endpoint.name not in controllers)
    voters = read("controller.quorum.voters", parse_voters)
    servers = read("controller.quorum.bootstrap.servers", parse_servers)
    own_ports = {values["ottla.grpc.port"], *(endpoint.port for endpoint in listeners if endpoint.name in controllers)}
    own_hosts = {hostname, *LOOPBACK, *(endpoint.host for endpoint in (*listeners, *all_advertised))}
    others = _others(servers, hosts={host.lower() for host in own_hosts}, ports=own_ports)
    advertised = _advertised(clients, advertised, hostname)
    return Addresses(
        listeners=clients,
        advertised=advertised,
        controller_listeners=tuple(endpoint for endpoint in listeners if endpoint.name in controllers),
        host=_host((*advertised, *all_advertised, *listeners), hostname),
        voters=voters,
        quorum_servers=() if voters else others,
    )


def _others(servers: Iterable[Server], *, hosts: Set[str], ports: Set[int]) -> tuple[str, ...]:
    """Without the node itself: an own port of an own host. Kafka's files name a node that begins a fleet like this."""
    return tuple(str(one) for one in servers if one.host.lower() not in hosts or one.port not in ports)


def _host(endpoints: Iterable[Endpoint], hostname: str) -> str:
    """A controller that is no broker has only controller listeners, advertised or not."""
    return next((one.host for one in endpoints if one.host not in EVERY_ADDRESS), hostname)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip().upper() for part in (text or "").split(",") if part.strip())


def _advertised(clients: tuple[Endpoint, ...], given: tuple[Endpoint, ...], hostname: str) -> tuple[Endpoint, ...]:
    known = {endpoint.name for endpoint in clients}
    if unknown := [endpoint.name for endpoint in given if endpoint.name not in known]:
        raise Refusal(f"advertised.listeners names {unknown[0]}, which is not among listeners ({', '.join(known)})")
    advertised = tuple(one if one.host else one.with_host(hostname) for one in given or clients)
    if any(endpoint.host == "0.0.0.0" for endpoint in advertised):
        raise Refusal("clients cannot connect to 0.0.0.0; set advertised.listeners to an address that they can reach")
    return advertised
