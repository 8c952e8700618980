"""Which nodes `ottla fleet status` and `drain` ask, and what to say to people when none of them answers."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.cli.control import ControlClient, NobodyAnswers
from ottla.cli.control_access import access, explain_access
from ottla.cli.fleet_plan import GRPC_PORTS_ABOVE, how_to_start, kept_control_addresses, kept_security
from ottla.cli.kafka.client import KafkaClient
from ottla.config.endpoints import PORT_MAX
from ottla.errors import Refusal

__all__ = ["control_addresses", "control_client", "explained"]

PROBE_S_MAX = 1.0
EXAMPLE = "give the gRPC port (ottla.grpc.port), such as"
DEFAULT_GRPC_PORT = 9192  # of the first broker of a local fleet


def control_client(
    bootstrap: str | None, data_dir: str, cert: str | None, key: str | None, ca: str | None
) -> ControlClient:
    """With the certificate that was given; else, for a local fleet that is secured, that of its first user."""
    security = kept_security(data_dir) if bootstrap is None and not (cert or key or ca) else None
    credentials = access(cert, key, ca) if security is None else security.credentials()
    return ControlClient(control_addresses(bootstrap, data_dir), credentials)


def control_addresses(bootstrap: str | None, data_dir: str) -> list[str]:
    """Those of --bootstrap, else those of the local fleet."""
    if bootstrap is None:
        return kept_control_addresses(data_dir)
    return [_address(part.strip()) for part in bootstrap.split(",")]


@contextmanager
def explained(bootstrap: str | None, data_dir: str, *, by_tls: bool = False) -> Iterator[None]:
    """Says why nobody answers, where it can be known."""
    try:
        yield
    except NobodyAnswers as silence:
        if bootstrap is None:
            _refuse_if_stopped(data_dir)
        for address in silence.unreachable if bootstrap is not None else ():
            _refuse_if_for_clients(address)
        for address in silence.unreachable:
            explain_access(address, by_tls=by_tls)
        raise


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):  # gRPC would take 443
        raise Refusal(f"--bootstrap {text}: no port given; {EXAMPLE} {text}:{DEFAULT_GRPC_PORT}")
    if not host or not (port.isascii() and port.isdecimal() and len(port) < 6 and 1 <= int(port) <= PORT_MAX):
        raise Refusal(
            f"--bootstrap {text}: expected HOST:PORT with a port of 1 to {PORT_MAX}; {EXAMPLE} 127.0.0.1:9192"
        )
    return text


def _refuse_if_stopped(data_dir: str) -> None:
    if not any(_accepts(address) for address in kept_control_addresses(data_dir)):
        raise Refusal(f"the fleet in {data_dir} is not running; start it with: {how_to_start(data_dir)}")


def _refuse_if_for_clients(address: str) -> None:
    client = KafkaClient(address, answer_s_max=PROBE_S_MAX)
    try:
        client.metadata()
    except Refusal:
        return
    finally:
        client.close()
    port = int(address.rpartition(":")[2])
    likely = port + GRPC_PORTS_ABOVE if port + GRPC_PORTS_ABOVE <= PORT_MAX else DEFAULT_GRPC_PORT
    raise Refusal(f"--bootstrap {address}: {port} looks like a port for Kafka clients; {EXAMPLE} {likely}")


def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_S_MAX).close()
    except OSError:
        return False
    return True
