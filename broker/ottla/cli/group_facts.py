"""Groups as a broker describes them, brought together: state, members, committed offsets, lag."""

import struct
from dataclasses import dataclass, field
from typing import Any

from ottla.cli.kafka.client import KafkaClient, check
from ottla.errors import Code, Refusal

__all__ = ["GroupFacts", "Listed", "PartitionFacts", "described", "listed"]

LIST_GROUPS, DESCRIBE_GROUPS, DESCRIBE_CONSUMER_GROUPS = (16, 5), (15, 5), (69, 1)
OFFSET_FETCH, LIST_OFFSETS = (9, 8), (2, 7)
LATEST = -1
UNKNOWN = -1
ON_BEHALF_OF_NOBODY = -1


@dataclass(frozen=True, slots=True)
class Listed:
    group_id: str
    type: str
    state: str
    protocol: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Offsets are -1 when there are none; so is the lag."""

    topic: str
    partition: int
    committed: int
    end: int
    owner: str = ""

    @property
    def lag(self) -> int:
        return max(self.end - self.committed, 0) if min(self.end, self.committed) >= 0 else UNKNOWN


@dataclass(slots=True)
class GroupFacts:
    group_id: str
    type: str
    state: str
    assignor: str
    coordinator: int
    members: int = 0
    partitions: list[PartitionFacts] = field(default_factory=list)

    @property
    def lag(self) -> int:
        return sum(max(partition.lag, 0) for partition in self.partitions)

    @property
    def uncommitted(self) -> int:
        """Partitions whose lag nobody knows: no offset was committed there."""
        return sum(partition.lag < 0 for partition in self.partitions)


def listed(client: KafkaClient) -> list[Listed]:
    client.metadata()
    found = []
    for broker in client.brokers:
        answer = client.ask(broker, LIST_GROUPS, {})
        check(answer.error_code, f"the groups of broker {broker}")
        found += [
            Listed(group.group_id, group.group_type, group.group_state, group.protocol_type, broker)
            for group in answer.groups
        ]
    return sorted(found, key=lambda group: group.group_id)


def described(client: KafkaClient, group_id: str) -> GroupFacts:
    client.metadata()
    coordinator = client.coordinator(group_id)
    facts, owners = _members(client, coordinator, group_id)
    committed = _committed(client, coordinator, group_id)
    places = sorted({*committed, *owners})
    ends = _ends(client, places)
    facts.partitions = [
        PartitionFacts(*place, committed.get(place, UNKNOWN), ends.get(place, UNKNOWN), owners.get(place, ""))
        for place in places
    ]
    return facts


def _members(client: KafkaClient, coordinator: int, group_id: str) -> tuple[GroupFacts, dict[tuple[str, int], str]]:
    (group,) = client.ask(coordinator, DESCRIBE_CONSUMER_GROUPS, {"group_ids": [group_id]}).groups
    if group.error_code == Code.group_id_not_found:
        return _classic_members(client, coordinator, group_id)
    check(group.error_code, f"group {group_id}")
    facts = GroupFacts(group_id, "consumer", group.group_state, group.assignor_name, coordinator, len(group.members))
    owners = {
        (topic.topic_name, partition): _who(member)
        for member in group.members
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    }
    return facts, owners


def _classic_members(
    client: KafkaClient, coordinator: int, group_id: str
) -> tuple[GroupFacts, dict[tuple[str, int], str]]:
    (group,) = client.ask(coordinator, DESCRIBE_GROUPS, {"groups": [group_id]}).groups
    check(group.error_code, f"group {group_id}")
    if group.group_state == "Dead":
        raise Refusal(f"there is no group {group_id}; `ottla groups list` shows those there are")
    facts = GroupFacts(group_id, "classic", group.group_state, group.protocol_data, coordinator, len(group.members))
    is_consumer = group.protocol_type == "consumer"
    owners = {
        place: _who(member)
        for member in group.members
        if is_consumer
        for place in _assignment(member.member_assignment)
    }
    return facts, owners


def _who(member: Any) -> str:
    return f"{member.client_id} at {member.client_host.lstrip('/')}"


def _assignment(data: bytes) -> list[tuple[str, int]]:
    """ConsumerProtocolAssignment: a version, then topics with their partitions. Others' formats are left alone."""
    places: list[tuple[str, int]] = []
    try:
        (topics,) = struct.unpack_from(">i", data, 2)
        position = 6
        for _ in range(topics):
            (size,) = struct.unpack_from(">h", data, position)
            topic = data[position + 2 : position + 2 + size].decode()
            (count,) = struct.unpack_from(">i", data, position + 2 + size)
            position += 6 + size
            places += [(topic, partition) for partition in struct.unpack_from(f">{count}i", data, position)]
            position += 4 * count
    except (struct.error, UnicodeDecodeError):
        return []
    return places


def _committed(client: KafkaClient, coordinator: int, group_id: str) -> dict[tuple[str, int], int]:
    asked = {"groups": [{"group_id": group_id, "topics": None}], "require_stable": False}
    (group,) = client.ask(coordinator, OFFSET_FETCH, asked).groups
    check(group.error_code, f"the offsets of group {group_id}")
    return {(t.name, p.partition_index): p.committed_offset for t in group.topics for p in t.partitions}


def _ends(client: KafkaClient, places: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Where the partitions end now; asked of their leaders."""
    if not places:
        return {}
    metadata = client.metadata(sorted({topic for topic, _ in places}))
    leaders = {(t.name, p.partition_index): p.leader_id for t in metadata.topics for p in t.partitions}
    by_leader: dict[int, list[tuple[str, int]]] = {}
    for place in places:
        if leaders.get(place, UNKNOWN) in client.brokers:
            by_leader.setdefault(leaders[place], []).append(place)
    ends: dict[tuple[str, int], int] = {}
    for leader, led in by_leader.items():
        topics = [
            {"name": topic, "partitions": [{"partition_index": partition, "timestamp": LATEST}]}
            for topic, partition in led
        ]
        answer = client.ask(leader, LIST_OFFSETS, {"replica_id": ON_BEHALF_OF_NOBODY, "topics": topics})
        ends |= {(t.name, p.partition_index): p.offset for t in answer.topics for p in t.partitions if not p.error_code}
    return ends
