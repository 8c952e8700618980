"""The values an image is made of. Pure, immutable."""

import uuid
from collections.abc import Mapping

import msgspec

__all__ = [
    "DIRECTORY_LOST",
    "DIRECTORY_UNASSIGNED",
    "NO_LEADER",
    "Broker",
    "ConfigResource",
    "Listener",
    "PartitionState",
    "QuotaEntity",
    "ResourceType",
    "Topic",
]

NO_LEADER = -1
# Kafka's reserved directory id: the broker has yet to say in which of its log dirs the replica lives (KIP-858).
DIRECTORY_UNASSIGNED = uuid.UUID(int=0)
# And the one of a replica whose log dir failed: it leads nothing until its broker is started again.
DIRECTORY_LOST = uuid.UUID(int=1)

ConfigResource = tuple[int, str]
QuotaEntity = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: (type, name) in the order of the types; None is the default of its type."""


class ResourceType:
    """Kafka's numbers for what a config belongs to."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


# gc=False: thousands of these live as long as the node, and none can be part of a cycle.
class PartitionState(msgspec.Struct, frozen=True, gc=False):
    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    directories: tuple[uuid.UUID, ...] = ()

    @property
    def lost(self) -> tuple[int, ...]:
        """Replicas whose log dir failed."""
        if DIRECTORY_LOST not in self.directories:
            return ()
        return tuple(
            each for each, where in zip(self.replicas, self.directories, strict=True) if where == DIRECTORY_LOST
        )


class Topic(msgspec.Struct, frozen=True, gc=False):
    name: str
    id: uuid.UUID
    partitions: tuple[PartitionState, ...] = ()


class Listener(msgspec.Struct, frozen=True, gc=False):
    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"


class Broker(msgspec.Struct, frozen=True):
    """One registered broker. `epoch` is the version at which it registered; `features` maps names to (low, high).

    At `grpc_port` other brokers copy and ask, at `control_port` it serves quorum and control; 0: at the same.
    """

    id: int
    epoch: int
    incarnation: uuid.UUID
    rack: str | None = None
    listeners: tuple[Listener, ...] = ()
    grpc_host: str = ""
    grpc_port: int = 0
    log_dirs: tuple[uuid.UUID, ...] = ()
    features: Mapping[str, tuple[int, int]] = {}
    fenced: bool = True
    in_controlled_shutdown: bool = False
    control_port: int = 0

    @property
    def peer_address(self) -> str:
        """Where other brokers copy and ask; empty for a broker alone."""
        return f"{self.grpc_host}:{self.grpc_port}" if self.grpc_port else ""

    @property
    def control_address(self) -> str:
        """Empty for a broker alone."""
        port = self.control_port or self.grpc_port
        return f"{self.grpc_host}:{port}" if port else ""

    @property
    def is_active(self) -> bool:
        """May lead and be in sync."""
        return not self.fenced and not self.in_controlled_shutdown

    def directory_for_new_replica(self) -> uuid.UUID:
        return self.log_dirs[0] if len(self.log_dirs) == 1 else DIRECTORY_UNASSIGNED
