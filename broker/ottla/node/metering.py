"""What this node's parts tell of themselves, by the names of `telemetry.core.table`."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.api.registry import load_all
from ottla.metadata.model.image import Image
from ottla.telemetry.core.counting import FleetCounts, PartitionCounts, count_fleet, count_partitions
from ottla.telemetry.core.table import Sample
from ottla.telemetry.lag import LoopLag
from ottla.telemetry.meters import Read

if TYPE_CHECKING:
    from ottla.node.brokering import BrokerPart
    from ottla.node.fleet import FleetPart
    from ottla.node.peers import PeersPart
    from ottla.node.quorum import QuorumPart
    from ottla.node.securing import ListenerIdentity, Securing
    from ottla.rpc.credentials import WatchedCredentials
    from ottla.security.authentication import AuthenticationCounts

__all__ = ["of_broker", "of_grpc", "of_process", "of_quorum", "together"]

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def of_process(*, pulse_age_s: Callable[[], float] | None, lags: dict[str, LoopLag]) -> dict[str, Read]:
    """A controller alone has no data loop, and so no pulse."""

    def loop_lag() -> Iterable[Sample]:
        return [((loop,), lag.largest_s) for loop, lag in lags.items()]

    told: dict[str, Read] = {
        "process_resident_memory_bytes": _one(_resident_bytes),
        "process_open_fds": _one(lambda: len(os.listdir("/proc/self/fd"))),
        "ottla_loop_lag_seconds": loop_lag,
    }
    return told if pulse_age_s is None else told | {"ottla_data_loop_pulse_age_seconds": _one(pulse_age_s)}


def of_broker(broker: "BrokerPart", *, node_id: int, image: Callable[[], Image]) -> dict[str, Read]:
    def requests() -> Iterable[Sample]:
        handled = broker.shared.handled if broker.shared is not None else ()
        return [((_kafkas(load_all()[key].name),), count) for key, count in enumerate(handled) if count]

    def partitions(what: Callable[[PartitionCounts], int]) -> Read:
        return _one(lambda: what(count_partitions(image(), node_id)))

    return _of_security(broker.securing) | {
        "kafka_server_socket_server_metrics_connection_count": lambda: [
            ((listener,), count) for listener, count in broker.connections().items()
        ],
        "kafka_network_requestmetrics_requests": requests,
        "ottla_request_bytes": _one(lambda: broker.shared.requests.used_bytes if broker.shared is not None else 0),
        "ottla_answer_bytes": _one(lambda: broker.shared.answers.held_bytes if broker.shared is not None else 0),
        "kafka_server_replicamanager_partitioncount": partitions(lambda counts: counts.hosted),
        "kafka_server_replicamanager_leadercount": partitions(lambda counts: counts.led),
        "kafka_server_replicamanager_underreplicatedpartitions": partitions(lambda counts: counts.under_replicated),
    }


def _of_security(securing: "Securing") -> dict[str, Read]:
    def logins(what: "Callable[[AuthenticationCounts], int]") -> Read:
        return lambda: [((listener,), what(counts)) for listener, counts in securing.counts.items()]

    def certificates(what: "Callable[[ListenerIdentity], float]") -> Read:
        return lambda: [((listener,), what(identity)) for listener, identity in securing.identities.items()]

    def infos() -> Iterable[Sample]:
        return [((listener, identity.now.leaf.serial), 1) for listener, identity in securing.identities.items()]

    server = "kafka_server_socket_server_metrics"
    return {
        f"{server}_successful_authentication": logins(lambda counts: counts.succeeded),
        f"{server}_failed_authentication": logins(lambda counts: counts.failed),
        f"{server}_successful_reauthentication": logins(lambda counts: counts.renewed),
        f"{server}_failed_reauthentication": logins(lambda counts: counts.renewals_failed),
        f"{server}_expired_connections_killed_count": logins(lambda counts: counts.expired),
        "ottla_certificate_info": infos,
        "ottla_certificate_not_after_seconds": certificates(lambda identity: identity.now.leaf.not_after_s),
        "ottla_certificate_loaded_seconds": certificates(lambda identity: identity.now.loaded_at_s),
        "ottla_certificate_refusals": certificates(lambda identity: identity.refusals),
    }


def of_grpc(fleet: "FleetPart", peers: "PeersPart | None") -> dict[str, Read]:
    """The certificates of both ports."""
    found = {"gRPC": fleet.credentials, "gRPC replication": peers.credentials if peers is not None else None}
    ports = {port: credentials for port, credentials in found.items() if credentials is not None}

    def certificates(what: "Callable[[WatchedCredentials], float]") -> Read:
        return lambda: [((port,), what(credentials)) for port, credentials in ports.items()]

    return {
        "ottla_certificate_info": lambda: [((port, f"{one.current.serial:X}"), 1) for port, one in ports.items()],
        "ottla_certificate_not_after_seconds": certificates(lambda one: one.current.not_after.timestamp()),
        "ottla_certificate_loaded_seconds": certificates(lambda one: one.loaded_at.timestamp()),
        "ottla_certificate_refusals": certificates(lambda one: one.refusals),
    }


def together(one: dict[str, Read], other: dict[str, Read]) -> dict[str, Read]:
    """Samples of both, where both tell of the same instrument."""

    def both(name: str) -> Read:
        return lambda: [*one[name](), *other[name]()]

    return one | other | {name: both(name) for name in one.keys() & other.keys()}


def of_quorum(quorum: "QuorumPart") -> dict[str, Read]:
    def fleet(what: Callable[[FleetCounts], int]) -> Read:
        """As Kafka: only the active controller tells."""
        return _one(lambda: what(count_fleet(quorum.feed.image)) if quorum.controller.is_active else 0)

    return {
        "kafka_controller_kafkacontroller_activecontrollercount": _one(lambda: int(quorum.controller.is_active)),
        "kafka_controller_kafkacontroller_offlinepartitionscount": fleet(lambda counts: counts.offline_partitions),
        "kafka_controller_kafkacontroller_activebrokercount": fleet(lambda counts: counts.active_brokers),
        "kafka_controller_kafkacontroller_fencedbrokercount": fleet(lambda counts: counts.fenced_brokers),
        "kafka_server_raft_metrics_current_epoch": _one(lambda: quorum.driver.term),
        "kafka_server_raft_metrics_high_watermark": _one(lambda: quorum.driver.raft.applied),
    }


def _kafkas(name: str) -> str:
    """init_producer_id as Kafka writes it: InitProducerId."""
    return "".join(word.capitalize() for word in name.split("_"))


def _one(read: Callable[[], float]) -> Read:
    """Of an instrument without labels."""
    return lambda: [((), read())]


def _resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * PAGE_BYTES
