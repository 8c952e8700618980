"""Deaths of clients and brokers in the midst of transactions, one fault at a time, healed when its function returns."""

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from kio.schema.find_coordinator.v3.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v3.response import FindCoordinatorResponse
from support.copier_process import CopierProcess
from support.fleet import FleetOf
from support.frames import Connection
from support.waiting import eventually

# Longer than the sessions of groups and than transactions may take: who sleeps so long wakes as a zombie.
TRANSACTION_TIMEOUT_MS = 15_000
ZOMBIE_S = 17.0
# Before and after the others noticed.
OUTAGE_S = (0.0, 4.0)


class Coordinator(IntEnum):
    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True)
class Scene:
    fleet: FleetOf
    copiers: list[CopierProcess]
    source: str
    targets: list[str]
    partitions: int
    chance: random.Random

    def outage(self) -> None:
        time.sleep(self.chance.uniform(*OUTAGE_S))

    def kill_broker(self, victim: int) -> None:
        self.fleet.members[victim].kill()
        self.outage()
        self.fleet.members[victim].start(wait=False)

    def coordinator(self, kind: Coordinator, key: str) -> int:
        """The broker's id; waits while there is none."""
        return eventually(lambda: self._asked(kind, key), lambda found: found >= 0)

    def _asked(self, kind: Coordinator, key: str) -> int:
        member = self.chance.choice([member for member in self.fleet.members if member.running])
        try:
            with Connection(member.port, host=member.host) as connection:
                request = FindCoordinatorRequest(key=key, key_type=kind)
                return int(connection.ask(request, FindCoordinatorResponse).node_id)
        except OSError:
            return -1


def client(scene: Scene) -> str:
    victim = scene.chance.choice(scene.copiers)
    victim.kill()
    scene.outage()
    victim.start(transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    return victim.name


def sleeping_client(scene: Scene) -> str:
    """Others take its place; then it goes on with what it had begun."""
    victim = scene.chance.choice(scene.copiers)
    victim.signal(signal.SIGSTOP)
    time.sleep(ZOMBIE_S)
    victim.signal(signal.SIGCONT)
    return victim.name


def transaction_coordinator(scene: Scene) -> str:
    bereft = scene.chance.choice(scene.copiers)
    victim = scene.coordinator(Coordinator.TRANSACTION, bereft.name)
    scene.kill_broker(victim)
    return f"broker {victim}, which ended transactions of {bereft.name}"


def group_coordinator(scene: Scene) -> str:
    group = scene.chance.choice(scene.copiers).group
    victim = scene.coordinator(Coordinator.GROUP, group)
    scene.kill_broker(victim)
    return f"broker {victim}, which had group {group}"


def leader(scene: Scene) -> str:
    topic, partition = scene.chance.choice([scene.source, *scene.targets]), scene.chance.randrange(scene.partitions)
    victim = scene.fleet.leader_of(topic, partition)
    scene.kill_broker(victim)
    return f"broker {victim}, which led {topic}-{partition}"


def client_and_coordinator(scene: Scene) -> str:
    """The next coordinator finds its open transaction."""
    copier = scene.chance.choice(scene.copiers)
    victim = scene.coordinator(Coordinator.TRANSACTION, copier.name)
    copier.kill()
    scene.kill_broker(victim)
    scene.outage()
    copier.start(transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    return f"{copier.name} and broker {victim}"


def all_brokers(scene: Scene) -> str:
    for member in scene.fleet.members:
        member.kill()
    for member in scene.chance.sample(scene.fleet.members, len(scene.fleet.members)):
        member.start(wait=False)
    return "all"


FIRE: dict[str, Callable[[Scene], str]] = {
    "kill a client": client,
    "kill a transaction coordinator": transaction_coordinator,
    "kill a group coordinator": group_coordinator,
    "kill a leader": leader,
    "kill a client and its coordinator": client_and_coordinator,
    "stop a client for long": sleeping_client,
    "kill all brokers": all_brokers,
}
