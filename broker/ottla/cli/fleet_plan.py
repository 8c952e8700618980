"""What a local fleet consists of: folders, ports and settings of each broker. Nothing here touches a process."""

import json
import os
import shlex
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.cli.fleet_security import FleetSecurity
from ottla.config.endpoints import PORT_MAX
from ottla.config.loading import load
from ottla.errors import Refusal
from ottla.ids import uuid_text
from ottla.system import System

__all__ = [
    "BrokerPlan",
    "FleetPlan",
    "check_settings",
    "how_to_start",
    "keep",
    "kept_control_addresses",
    "kept_security",
    "make_plan",
    "refuse_taken_ports",
]

HOST = "127.0.0.1"
BROKERS_MAX = 100
GRPC_PORTS_ABOVE, REPLICATION_PORTS_ABOVE = 100, 200  # of the Kafka ports
REPLICAS_OF_INTERNAL_TOPICS = 3
PLAN_FILE = "fleet.json"
HEALTH = "ottla.health.port"
DEFAULT_PORT = 9092


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlan:
    id: int
    rack: str | None
    port: int
    grpc_port: int
    replication_port: int
    health_port: int | None  # None: no probes, or at a free port
    folder: str
    settings: Mapping[str, str]

    @property
    def data_dir(self) -> str:
        return f"{self.folder}/data"

    @property
    def log_file(self) -> str:
        return f"{self.folder}/ottla.log"

    @property
    def pid_file(self) -> str:
        return f"{self.folder}/ottla.pid"

    def arguments(self) -> list[str]:
        """For `ottla serve`."""
        pairs = [part for name, value in self.settings.items() for part in ("--set", f"{name}={value}")]
        return ["serve", "--data-dir", self.data_dir, *pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    folder: str
    cluster_id: str
    brokers: tuple[BrokerPlan, ...]
    security: FleetSecurity | None = None

    @property
    def other_port(self) -> int:
        """For the first broker, when something is in the way."""
        port = self.brokers[0].port
        return port + 10_000 if port <= 50_000 else port - 10_000

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers)

    @property
    def control_addresses(self) -> list[str]:
        return [f"{HOST}:{broker.grpc_port}" for broker in self.brokers]


def make_plan(
    folder: str, *, count: int, racks: Sequence[str], port: int, settings: Mapping[str, str], secure: bool = False
) -> FleetPlan:
    """With the cluster id that the folder has, or a new one, kept there."""
    _refuse_misfits(count=count, racks=racks, port=port)
    folder = os.path.abspath(folder)
    cluster_id = _kept_cluster_id(folder, count, secure=secure)
    security = FleetSecurity(folder, HOST, cluster_id) if secure else None
    protocol = "SASL_SSL" if secure else "PLAINTEXT"
    grpc_ports = [port + GRPC_PORTS_ABOVE + number for number in range(count)]
    voters = ",".join(f"{number}@{HOST}:{grpc_port}" for number, grpc_port in enumerate(grpc_ports))
    replicas = str(min(count, REPLICAS_OF_INTERNAL_TOPICS))
    health_port = _port(settings.get(HEALTH))
    brokers = []
    for number in range(count):
        rack = racks[number] if racks else None
        own = {
            "node.id": str(number),
            "process.roles": "broker,controller",
            "cluster.id": cluster_id,
            "listeners": f"{protocol}://{HOST}:{port + number}",
            "ottla.grpc.port": str(grpc_ports[number]),
            "ottla.replication.port": str(port + REPLICATION_PORTS_ABOVE + number),
            "controller.quorum.voters": voters,
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(count, 2)),
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": str(min(count, 2)),
            **({"broker.rack": rack} if rack else {}),
            **(security.settings(number) if security else {}),
            **settings,
            **({HEALTH: str(health_port + number)} if health_port else {}),
        }
        place = f"{folder}/broker-{number}"
        brokers.append(
            BrokerPlan(
                id=number,
                rack=rack,
                port=port + number,
                grpc_port=grpc_ports[number],
                replication_port=port + REPLICATION_PORTS_ABOVE + number,
                health_port=health_port + number if health_port else None,
                folder=place,
                settings=own,
            )
        )
    return FleetPlan(folder=folder, cluster_id=cluster_id, brokers=tuple(brokers), security=security)


def check_settings(plan: FleetPlan) -> list[str]:
    """A bad --set is refused here, once, instead of by every broker in its log. The warnings of all, each once."""
    loaded = [load(None, broker.settings, broker.data_dir) for broker in plan.brokers]
    return list(dict.fromkeys(warning for config in loaded for warning in config.warnings))


def refuse_taken_ports(plan: FleetPlan, *, advice: str) -> None:
    """`advice` is the command that takes other ports."""
    uses: dict[int, str] = {}
    for broker in plan.brokers:
        uses[broker.port] = f"broker {broker.id}, Kafka clients"
        uses[broker.grpc_port] = f"broker {broker.id}, gRPC"
        uses[broker.replication_port] = f"broker {broker.id}, replication"
    for port, use in uses.items():
        if _taken(port):
            raise Refusal(f"port {port} ({use}) is in use; choose others: {advice}")
    for broker in plan.brokers:
        probes = broker.health_port
        if probes is not None and (probes in uses or _taken(probes)):
            by = f" by {uses[probes]}" if probes in uses else ""
            raise Refusal(
                f"port {probes} (broker {broker.id}, probes) is in use{by}; "
                f"the brokers take {len(plan.brokers)} ports from {HEALTH} on: choose another"
            )


def keep(plan: FleetPlan) -> None:
    """Write down what was started, for the next start and for `ottla fleet status`."""
    kept = {
        "cluster_id": plan.cluster_id,
        "brokers": len(plan.brokers),
        "control": plan.control_addresses,
        "racks": [broker.rack for broker in plan.brokers if broker.rack],
        "secure": plan.security is not None,
    }
    System().disk.replace_file(f"{plan.folder}/.gitignore", b"*\n")
    System().disk.replace_file(f"{plan.folder}/{PLAN_FILE}", json.dumps(kept, indent=1).encode() + b"\n")


def kept_control_addresses(folder: str) -> list[str]:
    kept = _kept(os.path.abspath(folder))
    if kept is None:
        raise Refusal(
            f"no fleet was started in {folder} ({PLAN_FILE} is missing). Start one with `ottla fleet up`, or name a "
            "node's gRPC port by --nodes HOST:PORT; one broker alone opens none unless started as "
            "`ottla serve --set ottla.grpc.port=9094`"
        )
    return list(map(str, kept["control"]))  # type: ignore[call-overload]


def kept_security(folder: str) -> FleetSecurity | None:
    """Of the fleet in this folder, when it was started with --secure."""
    kept = _kept(os.path.abspath(folder))
    if kept is None or not kept["secure"]:
        return None
    return FleetSecurity(os.path.abspath(folder), HOST, str(kept["cluster_id"]))


def how_to_start(folder: str) -> str:
    """The command that starts the fleet of a folder again."""
    kept = _kept(os.path.abspath(folder))
    assert kept is not None
    first, racks = int(kept_control_addresses(folder)[0].rpartition(":")[2]) - GRPC_PORTS_ABOVE, str(kept["racks"])
    return " ".join(
        [
            f"ottla fleet up -n {kept['brokers']} --data-dir {shlex.quote(folder)}",
            *([f"--racks {shlex.quote(racks)}"] if racks else []),
            *([f"--port {first}"] if first != DEFAULT_PORT else []),
            *(["--secure"] if kept["secure"] else []),
        ]
    )


def _kept(folder: str) -> dict[str, object] | None:
    path = f"{folder}/{PLAN_FILE}"
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        return {
            "cluster_id": str(kept["cluster_id"]),
            "brokers": int(kept["brokers"]),
            "control": kept["control"],
            "racks": ",".join(map(str, kept.get("racks", ()))),
            "secure": bool(kept.get("secure", False)),
        }
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}; use another --data-dir") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Refusal(f"{path} is malformed ({error}); restore it or use another --data-dir") from None


def _kept_cluster_id(folder: str, count: int, *, secure: bool) -> str:
    kept = _kept(folder)
    if kept is None:
        return uuid_text(System().new_uuid())
    if kept["brokers"] != count:
        raise Refusal(
            f"the fleet in {folder} has {kept['brokers']} brokers: start it with -n {kept['brokers']}, "
            "or another with another --data-dir"
        )
    if kept["secure"] is not secure:
        have, do = ("was", "with") if kept["secure"] else ("was not", "without")
        raise Refusal(
            f"the fleet in {folder} {have} made with --secure: start it {do} it, or another with another --data-dir"
        )
    return str(kept["cluster_id"])


def _refuse_misfits(*, count: int, racks: Sequence[str], port: int) -> None:
    if not 1 <= count <= BROKERS_MAX:
        raise Refusal(f"-n {count}: a local fleet has 1 to {BROKERS_MAX} brokers")
    if racks and len(racks) != count:
        raise Refusal(f"--racks names {len(racks)} racks for {count} brokers: one for each, such as a,b,c")
    highest = PORT_MAX + 1 - REPLICATION_PORTS_ABOVE - count
    if not 1 <= port <= highest:
        raise Refusal(
            f"--port {port}: the first port of {count} brokers is 1 to {highest}, to leave room for the others"
        )


def _port(text: str | None) -> int | None:
    """None: not given, a free one (0), or no port, which `check_settings` says."""
    text = (text or "").strip()
    return int(text) or None if text.isascii() and text.isdecimal() and len(text) < 6 else None


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False
