"""Metadata records: protobuf on disk, one batch per Raft entry. Pure.

`*_record` functions wrap one kind each, so that nobody else spells the oneof.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ottla.metadata.model.acls import AclBinding
from ottla.metadata.model.credentials import ScramCredential, ScramOwner
from ottla.metadata.model.state import Broker, PartitionState, QuotaEntity
from ottla.metadata.model.tokens import DelegationToken
from ottla.pb import metadata_pb2 as pb

__all__ = [
    "Record",
    "acl_record",
    "broker_change_record",
    "broker_record",
    "client_quota_record",
    "config_record",
    "decode_batch",
    "delegation_token_record",
    "encode_batch",
    "feature_record",
    "partition_change_record",
    "partition_record",
    "producer_ids_record",
    "remove_acl_record",
    "remove_delegation_token_record",
    "remove_scram_credential_record",
    "remove_topic_record",
    "scram_credential_record",
    "topic_record",
    "unregister_broker_record",
]

Record = pb.MetadataRecord


def encode_batch(records: Iterable[Record]) -> bytes:
    return pb.MetadataBatch(records=records).SerializeToString()


def decode_batch(data: bytes) -> Sequence[Record]:
    return pb.MetadataBatch.FromString(data).records


def topic_record(*, name: str, topic_id: uuid.UUID) -> Record:
    return Record(topic=pb.TopicRecord(name=name, id=topic_id.bytes))


def remove_topic_record(topic_id: uuid.UUID) -> Record:
    return Record(remove_topic=pb.RemoveTopicRecord(id=topic_id.bytes))


def partition_record(topic_id: uuid.UUID, state: PartitionState) -> Record:
    return Record(
        partition=pb.PartitionRecord(
            topic_id=topic_id.bytes,
            index=state.index,
            replicas=state.replicas,
            isr=state.isr,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            adding=state.adding,
            removing=state.removing,
            elr=state.elr,
            last_known_elr=state.last_known_elr,
            directories=[directory.bytes for directory in state.directories],
        )
    )


def partition_change_record(
    topic_id: uuid.UUID,
    index: int,
    *,
    leader: int | None = None,
    directories: Sequence[uuid.UUID] | None = None,
    **replica_lists: Sequence[int] | None,
) -> Record:
    """What is None stays. `replica_lists`: replicas, isr, adding, removing, elr, last_known_elr."""
    change = pb.PartitionChangeRecord(topic_id=topic_id.bytes, index=index, leader=leader)
    for name, ids in replica_lists.items():
        if ids is not None:
            getattr(change, name).CopyFrom(pb.BrokerIds(ids=ids))
    if directories is not None:
        change.directories.CopyFrom(pb.DirectoryIds(ids=[directory.bytes for directory in directories]))
    return Record(partition_change=change)


def config_record(*, resource_type: int, resource_name: str, key: str, value: str | None) -> Record:
    return Record(
        config=pb.ConfigRecord(resource_type=resource_type, resource_name=resource_name, key=key, value=value)
    )


def broker_record(broker: Broker) -> Record:
    return Record(
        register_broker=pb.RegisterBrokerRecord(
            id=broker.id,
            epoch=broker.epoch,
            incarnation=broker.incarnation.bytes,
            rack=broker.rack,
            listeners=[
                pb.Listener(name=each.name, host=each.host, port=each.port, protocol=each.protocol)
                for each in broker.listeners
            ],
            grpc_host=broker.grpc_host,
            grpc_port=broker.grpc_port,
            control_port=broker.control_port,
            log_dirs=[directory.bytes for directory in broker.log_dirs],
            features=_version_ranges(broker.features),
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
        )
    )


def _version_ranges(features: Mapping[str, tuple[int, int]]) -> dict[str, pb.VersionRange]:
    return {name: pb.VersionRange(lowest=low, highest=high) for name, (low, high) in features.items()}


def unregister_broker_record(*, broker_id: int, epoch: int) -> Record:
    return Record(unregister_broker=pb.UnregisterBrokerRecord(id=broker_id, epoch=epoch))


def broker_change_record(
    *, broker_id: int, epoch: int, fenced: bool | None = None, in_controlled_shutdown: bool | None = None
) -> Record:
    return Record(
        broker_change=pb.BrokerChangeRecord(
            id=broker_id, epoch=epoch, fenced=fenced, in_controlled_shutdown=in_controlled_shutdown
        )
    )


def client_quota_record(entity: QuotaEntity, *, key: str, value: float | None) -> Record:
    named = [pb.QuotaEntity(type=kind, name=name) for kind, name in entity]
    return Record(client_quota=pb.ClientQuotaRecord(entity=named, key=key, value=value))


def scram_credential_record(owner: ScramOwner, credential: ScramCredential) -> Record:
    user, mechanism = owner
    previous = credential.previous
    return Record(
        scram_credential=pb.ScramCredentialRecord(
            user=user,
            mechanism=mechanism,
            salt=credential.salt,
            iterations=credential.iterations,
            stored_key=credential.keys.stored,
            server_key=credential.keys.server,
            previous=pb.PreviousScramKeys(
                stored_key=previous.keys.stored, server_key=previous.keys.server, until_ms=previous.until_ms
            )
            if previous is not None
            else None,
        )
    )


def remove_scram_credential_record(owner: ScramOwner) -> Record:
    user, mechanism = owner
    return Record(remove_scram_credential=pb.RemoveScramCredentialRecord(user=user, mechanism=mechanism))


def acl_record(acl_id: uuid.UUID, binding: AclBinding) -> Record:
    return Record(acl=pb.AclRecord(id=acl_id.bytes, **msgspec.structs.asdict(binding)))


def remove_acl_record(acl_id: uuid.UUID) -> Record:
    return Record(remove_acl=pb.RemoveAclRecord(id=acl_id.bytes))


def delegation_token_record(token: DelegationToken) -> Record:
    return Record(
        delegation_token=pb.DelegationTokenRecord(
            id=token.id,
            owner=token.owner,
            requester=token.requester,
            renewers=token.renewers,
            issued_ms=token.issued_ms,
            expires_ms=token.expires_ms,
            expires_ms_max=token.expires_ms_max,
        )
    )


def remove_delegation_token_record(token_id: str) -> Record:
    return Record(remove_delegation_token=pb.RemoveDelegationTokenRecord(id=token_id))


def feature_record(*, name: str, level: int) -> Record:
    return Record(feature_level=pb.FeatureLevelRecord(name=name, level=level))


def producer_ids_record(next_producer_id: int) -> Record:
    return Record(producer_ids=pb.ProducerIdsRecord(next=next_producer_id))
