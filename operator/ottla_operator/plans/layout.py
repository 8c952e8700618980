"""The nodes of a cluster: their pools, zones, ids and names. Pure.

A pool's nodes in one zone are a set with a block of node ids. What was decided once is recorded on StatefulSets and
volume claims, and is never decided again: data cannot follow a change of mind.
"""

import base64
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.plans.zones import NO_ZONE, Zones
from ottla_operator.resources.kafka_cluster import NODES_PER_POOL_MAX, KafkaCluster, Pool

__all__ = ["NO_ZONE", "Layout", "NodeSet", "Record", "plan_layout"]

ID_BLOCK = NODES_PER_POOL_MAX  # so that a set can grow to all of its pool
TOP_BIT = 0x80


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a StatefulSet or a volume claim remembers. `nodes`: how many of the set's ids it proves to be taken."""

    cluster_id: str
    pool: str
    zone: str
    first_id: int
    nodes: int


class NodeSet(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a pool in a zone: ids from `first_id` on."""

    pool: str
    zone: str
    first_id: int
    nodes: int

    @property
    def ids(self) -> range:
        return range(self.first_id, self.first_id + self.nodes)


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    cluster_id: str
    sets: tuple[NodeSet, ...]

    @property
    def node_count(self) -> int:
        return sum(one.nodes for one in self.sets)

    @property
    def zones(self) -> list[str]:
        return sorted({one.zone for one in self.sets} - {NO_ZONE})


def plan_layout(cluster: KafkaCluster, records: Sequence[Record], zones: Zones) -> Layout | Obstacle:
    """`zones`: those that each pool may use now."""
    ids = {record.cluster_id for record in records}
    if len(ids) > 1:
        return Obstacle(
            "ConflictingVolumes",
            f"volume claims labelled for this cluster belong to several fleets ({', '.join(sorted(ids))}); "
            "delete those of the fleet that is no longer wanted",
        )
    load: Counter[str] = Counter()
    next_id = max((record.first_id // ID_BLOCK + 1 for record in records), default=0) * ID_BLOCK
    sets: list[NodeSet] = []
    for pool in cluster.spec.pools:
        counts, places = _recorded_counts(records, pool.name), zones[pool.name]
        if obstacle := _obstacle(pool, counts, places):
            return obstacle
        _spread(pool.replicas, counts, places, load)
        first_ids = {record.zone: record.first_id for record in records if record.pool == pool.name}
        for made in _sets(pool, counts, first_ids, next_id):
            sets.append(made)
            next_id = max(next_id, made.first_id + ID_BLOCK)
    return Layout(cluster_id=ids.pop() if ids else _new_cluster_id(cluster.metadata.uid), sets=tuple(sets))


def _recorded_counts(records: Sequence[Record], pool: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for record in records:
        if record.pool == pool:
            counts[record.zone] = max(counts[record.zone], record.nodes)
    return counts


def _obstacle(pool: Pool, counts: Mapping[str, int], places: Sequence[str]) -> Obstacle | None:
    taken = sum(counts.values())
    if taken > pool.replicas:
        return Obstacle(
            "VolumesOfMoreNodes",
            f"pool {pool.name} has volumes of {taken} nodes and should have {pool.replicas}; "
            f"set replicas to {taken}, or delete the volume claims that are no longer wanted",
        )
    if not places and taken < pool.replicas:
        return Obstacle(
            "NoNodes",
            f"no node of Kubernetes may run pods of pool {pool.name}: all are cordoned, or have taints that the pool "
            "does not tolerate; uncordon one, or set spec.pools[].tolerations",
        )
    return None


def _spread(replicas: int, counts: Counter[str], places: Sequence[str], load: Counter[str]) -> None:
    """One after the other to where the pool, then the whole cluster, has fewest."""
    load.update(counts)
    for _ in range(replicas - sum(counts.values())):
        zone = min(places, key=lambda place: (counts[place], load[place], place))
        counts[zone] += 1
        load[zone] += 1


def _sets(pool: Pool, counts: Mapping[str, int], first_ids: Mapping[str, int], next_id: int) -> Iterator[NodeSet]:
    for zone, nodes in sorted(counts.items()):
        if not nodes:
            continue
        first_id = first_ids.get(zone)
        if first_id is None:
            first_id, next_id = next_id, next_id + ID_BLOCK
        yield NodeSet(pool=pool.name, zone=zone, first_id=first_id, nodes=nodes)


def _new_cluster_id(uid: str) -> str:
    """Kafka's 22 characters. From the object's own id, so that a crash before it is recorded changes nothing."""
    raw = bytearray(uuid.UUID(uid).bytes)
    text = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    if text.startswith("-"):  # tools would take it for an option
        raw[0] ^= TOP_BIT
        text = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    return text
