"""An image as bytes: a header and the fewest records that build it again. Pure."""

from collections.abc import Iterator, Sequence

from ottla.metadata.model import records as make
from ottla.metadata.model.records import Record
from ottla.metadata.model.tables import Tables
from ottla.pb import metadata_pb2 as pb

__all__ = ["decode", "encode"]


def encode(image: Tables) -> bytes:
    header = pb.SnapshotHeader(
        version=image.version, epoch=image.epoch, cluster_id=image.cluster_id, features_epoch=image.features_epoch
    )
    return pb.MetadataSnapshot(header=header, records=_records(image)).SerializeToString()


def decode(data: bytes) -> tuple[pb.SnapshotHeader, Sequence[Record]]:
    whole = pb.MetadataSnapshot.FromString(data)
    return whole.header, whole.records


def _records(image: Tables) -> Iterator[Record]:
    for name, level in image.features.items():
        yield make.feature_record(name=name, level=level)
    for broker in image.brokers.values():
        yield make.broker_record(broker)
    for topic in image.topics.values():
        yield make.topic_record(name=topic.name, topic_id=topic.id)
        for partition in topic.partitions:
            yield make.partition_record(topic.id, partition)
    for (resource_type, resource_name), settings in image.configs.items():
        for key, value in settings.items():
            yield make.config_record(resource_type=resource_type, resource_name=resource_name, key=key, value=value)
    for entity, quotas in image.client_quotas.items():
        for key, limit in quotas.items():
            yield make.client_quota_record(entity, key=key, value=limit)
    for owner, credential in image.scram_credentials.items():
        yield make.scram_credential_record(owner, credential)
    for acl_id, binding in image.acls.items():
        yield make.acl_record(acl_id, binding)
    for token in image.delegation_tokens.values():
        yield make.delegation_token_record(token)
    if image.next_producer_id:
        yield make.producer_ids_record(image.next_producer_id)
