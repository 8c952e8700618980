"""The controller's commands and replies. Pure values.

A command either fails as a whole (KafkaError) or answers per item, each with its own code and message.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Generic, TypeVar

import msgspec

from ottla.errors import Code
from ottla.metadata.model.acls import AclBinding
from ottla.metadata.model.credentials import ScramKeys, ScramOwner
from ottla.metadata.model.records import Record
from ottla.metadata.model.state import ConfigResource, Listener, PartitionState, QuotaEntity
from ottla.metadata.model.tokens import DelegationToken
from ottla.ports import Random

__all__ = [
    "AclFilter",
    "AllocateProducerIds",
    "AlterClientQuotas",
    "AlterConfigs",
    "AlterPartition",
    "AlterReassignments",
    "AlterScramCredentials",
    "Command",
    "Context",
    "CreateAcls",
    "CreateDelegationToken",
    "CreatePartitions",
    "CreateTopics",
    "CreatedTopic",
    "Decision",
    "DeleteAcls",
    "DeleteTopics",
    "ElectLeaders",
    "ElectionType",
    "EndDelegationToken",
    "ExpireCredentials",
    "FenceBroker",
    "IncrementalAlterConfigs",
    "IsrChange",
    "Limits",
    "MoveLeadersAway",
    "NewPartitions",
    "NewTopic",
    "Outcome",
    "PartitionRef",
    "ProducerIdBlock",
    "QuotaChange",
    "Reassignment",
    "RegisterBroker",
    "RenewDelegationToken",
    "ReplicasLost",
    "RotateScramCredentials",
    "ScramUpsertion",
    "SettingChange",
    "SettingOperation",
    "TopicRef",
    "UnfenceBroker",
    "UnregisterBroker",
    "UpdateFeatures",
    "UpgradeType",
]

Reply = TypeVar("Reply")
Value = TypeVar("Value")
PartitionRef = tuple[str, int]


class Limits(msgspec.Struct, frozen=True):
    partitions_per_request_max: int = 10_000
    partitions_in_fleet_max: int = 1_000_000
    acls_in_fleet_max: int = 100_000
    tokens_in_fleet_max: int = 10_000
    tokens_of_owner_max: int = 1_000
    scram_credentials_in_fleet_max: int = 100_000
    # Of settings, quotas, ACLs and credentials: every node has them in memory several times, beside its metadata log.
    text_bytes_in_fleet_max: int = 32 << 20


def _accept_setting(resource: ConfigResource, name: str, value: str) -> str | None:
    return None


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a decision needs besides the image and the command."""

    now_ms: int
    new_uuid: Callable[[], uuid.UUID]
    random: Random
    # The version of this decision's records: the epoch of a broker that registers.
    next_version: int
    node_id: int = 0
    limits: Limits = Limits()
    default_partitions: int = 1
    default_replication_factor: int = 1
    # None if the value is valid, otherwise the message for INVALID_CONFIG.
    check_config: Callable[[ConfigResource, str, str], str | None] = _accept_setting
    # Whether a setting is a list: only lists allow APPEND and SUBTRACT.
    is_list_setting: Callable[[int, str], bool] = lambda resource_type, name: False
    default_setting: Callable[[int, str], str | None] = lambda resource_type, name: None
    # Brokers with a live session: another incarnation cannot register their id.
    live_brokers: Set[int] = frozenset()
    supported_features: Mapping[str, tuple[int, int]] = {}
    # The settings this node started with; those in the image override them.
    min_insync_replicas: int = 1
    unclean_elections: bool = False
    topics_may_be_deleted: bool = True
    # What `ottla format` left for a metadata log that is empty.
    bootstrap: Sequence[Record] = ()
    # Of delegation tokens: until they must be renewed, and at most.
    token_expiry_ms: int = 86_400_000
    token_lifetime_ms_max: int = 7 * 86_400_000


class Outcome(msgspec.Struct, Generic[Value], frozen=True):
    """The answer about one item of a command."""

    value: Value
    code: Code = Code.none
    message: str | None = None

    @property
    def ok(self) -> bool:
        return self.code is Code.none


class Decision(msgspec.Struct, Generic[Reply], frozen=True):
    reply: Reply
    records: Sequence[Record] = ()


class Command(msgspec.Struct, Generic[Reply], frozen=True):
    """Base of all commands; the parameter is the reply's type."""


# -- topics


class NewTopic(msgspec.Struct, frozen=True):
    """-1: the broker's default. `assignments` (partition number → replicas) excludes both counts."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class CreatedTopic(msgspec.Struct, frozen=True):
    """Zeroes when the topic could not be created."""

    name: str
    id: uuid.UUID = uuid.UUID(int=0)
    partitions: int = -1
    replication_factor: int = -1


class CreateTopics(Command[list[Outcome[CreatedTopic]]], frozen=True):
    topics: Sequence[NewTopic]
    validate_only: bool = False


class TopicRef(msgspec.Struct, frozen=True):
    """By name or by id; an outcome has both if they are known."""

    name: str | None = None
    id: uuid.UUID = uuid.UUID(int=0)


class DeleteTopics(Command[list[Outcome[TopicRef]]], frozen=True):
    topics: Sequence[TopicRef]


class NewPartitions(msgspec.Struct, frozen=True):
    """`count` is the new total."""

    topic: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


class CreatePartitions(Command[list[Outcome[str]]], frozen=True):
    topics: Sequence[NewPartitions]
    validate_only: bool = False


# -- settings


class SettingOperation:
    """Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class SettingChange(msgspec.Struct, frozen=True):
    key: str
    operation: int
    value: str | None = None


class AlterConfigs(Command[list[Outcome[ConfigResource]]], frozen=True):
    """Each resource has exactly these settings afterwards."""

    resources: Sequence[tuple[ConfigResource, Mapping[str, str | None]]]
    validate_only: bool = False


class IncrementalAlterConfigs(Command[list[Outcome[ConfigResource]]], frozen=True):
    resources: Sequence[tuple[ConfigResource, Sequence[SettingChange]]]
    validate_only: bool = False


# -- quotas


class QuotaChange(msgspec.Struct, frozen=True):
    """`changes`: (key, value), or (key, None) to remove it. An entity changes whole or not at all."""

    entity: QuotaEntity
    changes: Sequence[tuple[str, float | None]]


class AlterClientQuotas(Command[list[Outcome[QuotaEntity]]], frozen=True):
    changes: Sequence[QuotaChange]
    validate_only: bool = False


# -- credentials


class ScramUpsertion(msgspec.Struct, frozen=True):
    """`keys` are empty where they could not be made: the mechanism is unknown, or it was no salted password."""

    user: str
    mechanism: int
    salt: bytes
    iterations: int
    keys: ScramKeys


class AlterScramCredentials(Command[list[Outcome[str]]], frozen=True):
    """Answered per user: one who is named twice changes not at all."""

    deletions: Sequence[ScramOwner] = ()
    upsertions: Sequence[ScramUpsertion] = ()


class RotateScramCredentials(Command[None], frozen=True):
    """A new password for a user: with the salt and iterations of the one before, which stays good for `keep_old_ms`.

    All of them or none (KafkaError).
    """

    credentials: Sequence[ScramUpsertion]
    keep_old_ms: int


class ExpireCredentials(Command[None], frozen=True):
    """What is not good any more is forgotten: passwords that were kept during a rotation, delegation tokens."""


class CreateDelegationToken(Command[DelegationToken], frozen=True):
    """Principals as Kafka writes them. `lifetime_ms`: 0 or less is as long as may be."""

    owner: str
    requester: str
    renewers: Sequence[str] = ()
    lifetime_ms: int = 0


class RenewDelegationToken(Command[int], frozen=True):
    """Replies when it expires now. `period_ms`: 0 or less is as long as may be."""

    token_id: str
    principal: str
    period_ms: int


class EndDelegationToken(Command[int], frozen=True):
    """Replies when it expires now. `period_ms`: from now on; less than 0 removes it at once."""

    token_id: str
    principal: str
    period_ms: int


# -- access control lists


class AclFilter(msgspec.Struct, frozen=True):
    """Kafka's numbers; None and 1 (ANY) leave open."""

    resource_type: int
    pattern_type: int
    resource_name: str | None
    principal: str | None
    host: str | None
    operation: int
    permission: int


class CreateAcls(Command[list[Outcome[None]]], frozen=True):
    bindings: Sequence[AclBinding]


class DeleteAcls(Command[list[Outcome[list[AclBinding]]]], frozen=True):
    filters: Sequence[AclFilter]


# -- features and ids


class UpgradeType:
    """Kafka's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class UpdateFeatures(Command[list[str]], frozen=True):
    """`updates`: (feature, level, upgrade type); level 0 removes a feature. All of them or none (KafkaError)."""

    updates: Sequence[tuple[str, int, int]]
    validate_only: bool = False


class ProducerIdBlock(msgspec.Struct, frozen=True):
    first: int
    size: int


class AllocateProducerIds(Command[ProducerIdBlock], frozen=True):
    broker_id: int
    broker_epoch: int


# -- brokers


class RegisterBroker(Command[int], frozen=True):
    """The reply is the broker's epoch. The broker starts fenced.

    `previous_epoch` is the one in its clean-shutdown file. If it differs from the last registration's epoch, the
    shutdown was unclean, and the broker may have lost records.
    """

    id: int
    incarnation: uuid.UUID
    cluster_id: str
    listeners: Sequence[Listener]
    rack: str | None = None
    grpc_host: str = ""
    grpc_port: int = 0
    log_dirs: Sequence[uuid.UUID] = ()
    features: Mapping[str, tuple[int, int]] = {}
    previous_epoch: int = -1
    control_port: int = 0


class UnregisterBroker(Command[None], frozen=True):
    id: int


class FenceBroker(Command[None], frozen=True):
    """Its session expired, or it shuts down (`in_controlled_shutdown`): it leads nothing afterwards."""

    id: int
    epoch: int
    in_controlled_shutdown: bool = False


class UnfenceBroker(Command[None], frozen=True):
    id: int
    epoch: int


# -- partitions


class IsrChange(msgspec.Struct, frozen=True):
    """`isr`: (broker id, broker epoch); epoch -1 is not checked (KIP-903)."""

    topic_id: uuid.UUID
    index: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[tuple[int, int]]


class AlterPartition(Command[list[Outcome[PartitionState | None]]], frozen=True):
    """AlterPartition: a leader changes the in-sync sets of partitions that it leads.

    NEW_LEADER_ELECTED: the change was made, completed a reassignment, and another broker leads now.
    """

    broker_id: int
    broker_epoch: int
    partitions: Sequence[IsrChange]


class ReplicasLost(Command[None], frozen=True):
    """A log dir of the broker failed with these replicas (topic id, partition); the broker stays up."""

    broker_id: int
    broker_epoch: int
    partitions: Sequence[tuple[uuid.UUID, int]]


class ElectionType:
    """Kafka's numbers."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectLeaders(Command[list[Outcome[PartitionRef]]], frozen=True):
    """None: all partitions; then the answer omits those that need no election."""

    election_type: int
    partitions: Sequence[PartitionRef] | None = None


class MoveLeadersAway(Command[int], frozen=True):
    """Move the broker's leaders to other brokers where possible. The reply is the number of partitions it still
    leads."""

    broker_id: int


class Reassignment(msgspec.Struct, frozen=True):
    """`replicas` None: cancel."""

    topic: str
    index: int
    replicas: Sequence[int] | None


class AlterReassignments(Command[list[Outcome[PartitionRef]]], frozen=True):
    partitions: Sequence[Reassignment]
    allow_replication_factor_change: bool = True
