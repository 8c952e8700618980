"""One broker of a fleet, of either kind: its seat says who it is and who the others are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.genuine import GenuineKafka
from support.ottla_broker import OttlaBroker
from support.process import BrokerProcess

# Both kinds get these, so that a test waits for what it tests and not for a group's first members.
FOR_TESTS = {"group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True)
class Seat:
    """`quorum_port` is the port for the other nodes: Kafka's controller listener, Ottla's gRPC."""

    node_id: int
    rack: str
    host: str
    quorum_port: int
    cluster_id: str
    voters: str
    inside: tuple[str, ...] = ()

    def settings(self, port: int) -> dict[str, str]:
        return {
            "node.id": str(self.node_id),
            "broker.rack": self.rack,
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{self.host}:{port}",
            "controller.quorum.voters": self.voters,
            **FOR_TESTS,
        }


class KafkaMember(GenuineKafka):
    def __init__(self, folder: Path, seat: Seat, settings: Mapping[str, str]) -> None:
        super().__init__(folder, settings=settings, host=seat.host, inside=seat.inside)
        self.seat = seat

    def fleet_settings(self) -> dict[str, str]:
        both = f"PLAINTEXT://{self.host}:{self.port},CONTROLLER://{self.host}:{self.seat.quorum_port}"
        return {**self.seat.settings(self.port), "listeners": both}

    def format_options(self) -> list[str]:
        return [f"--cluster-id={self.seat.cluster_id}"]


class OttlaMember(OttlaBroker):
    def __init__(self, folder: Path, seat: Seat, settings: Mapping[str, str]) -> None:
        identity = {"cluster.id": seat.cluster_id, "ottla.grpc.port": str(seat.quorum_port)}
        super().__init__(folder, settings=settings, host=seat.host, inside=seat.inside)
        self.seat = seat
        self.settings = {**seat.settings(self.port), **identity, **self.settings}


MEMBERS: dict[str, type[KafkaMember] | type[OttlaMember]] = {"kafka": KafkaMember, "ottla": OttlaMember}


def make_members(peer: str, folder: Path, seats: Sequence[Seat], settings: Mapping[str, str]) -> list[BrokerProcess]:
    return [MEMBERS[peer](folder / f"broker-{seat.node_id}", seat, settings) for seat in seats]
