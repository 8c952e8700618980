"""Which nodes `ottla fleet status` and `drain` ask, and what to say to people when none of them answers."""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.cli.control import ControlClient, NobodyAnswers
from ottla.cli.control_access import access, explain_access
from ottla.cli.fleet_plan import GRPC_PORTS_ABOVE, how_to_start, kept_control_addresses, kept_security
from ottla.cli.kafka.connection import Connection
from ottla.cli.kafka.settings import ClientSettings
from ottla.config.endpoints import PORT_MAX
from ottla.errors import Refusal
from ottla.rpc.probing import split_address

__all__ = ["control_addresses", "control_client", "explained"]

PROBE_S_MAX = 1.0
API_VERSIONS = (18, 0)
EXAMPLE = "give the gRPC port (ottla.grpc.port), such as"
DEFAULT_GRPC_PORT = 9192  # of the first broker of a local fleet


def control_client(
    nodes: str | None, data_dir: str, cert: str | None, key: str | None, ca: str | None
) -> ControlClient:
    """With the certificate that was given; else, for a local fleet that is secured, that of its first user."""
    security = kept_security(data_dir) if nodes is None and not (cert or key or ca) else None
    credentials = access(cert, key, ca) if security is None else security.credentials()
    return ControlClient(control_addresses(nodes, data_dir), credentials)


def control_addresses(nodes: str | None, data_dir: str) -> list[str]:
    """Those of --nodes, else those of the local fleet."""
    if nodes is None:
        return kept_control_addresses(data_dir)
    return [_address(part.strip()) for part in nodes.split(",")]


@contextmanager
def explained(nodes: str | None, data_dir: str, *, by_tls: bool = False) -> Iterator[None]:
    """Says why nobody answers, where it can be known."""
    try:
        yield
    except NobodyAnswers as silence:
        if nodes is None:
            _refuse_if_stopped(data_dir)
        for address in silence.unreachable if nodes is not None else ():
            _refuse_if_for_clients(address)
        for address in silence.unreachable:
            explain_access(address, by_tls=by_tls)
        raise


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):  # gRPC would take 443
        raise Refusal(f"--nodes {text}: no port given; {EXAMPLE} {text}:{DEFAULT_GRPC_PORT}")
    if not host or not (port.isascii() and port.isdecimal() and len(port) < 6 and 1 <= int(port) <= PORT_MAX):
        raise Refusal(f"--nodes {text}: expected HOST:PORT with a port of 1 to {PORT_MAX}; {EXAMPLE} 127.0.0.1:9192")
    return text


def _refuse_if_stopped(data_dir: str) -> None:
    if not any(_accepts(address) for address in kept_control_addresses(data_dir)):
        raise Refusal(f"the fleet in {data_dir} is not running; start it with: {how_to_start(data_dir)}")


def _refuse_if_for_clients(address: str) -> None:
    if not any(_answers_clients(address, protocol) for protocol in ("PLAINTEXT", "SSL")):
        return
    port = int(address.rpartition(":")[2])
    likely = port + GRPC_PORTS_ABOVE if port + GRPC_PORTS_ABOVE <= PORT_MAX else DEFAULT_GRPC_PORT
    raise Refusal(f"--nodes {address}: {port} looks like a port for Kafka clients; {EXAMPLE} {likely}")


def _answers_clients(address: str, protocol: str) -> bool:
    """Whether it says which versions of Kafka's requests it knows: everybody may ask that, before any login."""
    settings = ClientSettings(protocol=protocol, checks_certificate=False)
    try:
        connection = Connection(split_address(address), settings, answer_s_max=PROBE_S_MAX)
    except Refusal:
        return False
    with contextlib.closing(connection):
        try:
            connection.ask(API_VERSIONS, {})
        except Refusal:
            return False
    return True


def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_S_MAX).close()
    except OSError:
        return False
    return True
