"""What handlers read of requests, in all versions served. Made by scripts/generate_requests.py: do not edit.

A message has the fields of its version and of the newest one, with their defaults. A field that only older versions
have is marked; it is missing in the others. Messages are not made from these classes: `wire.reader` makes its own.
"""

from __future__ import annotations

from collections.abc import Sequence


class ProducePartitionProduceData:
    index: int
    records: memoryview | None


class ProduceTopicProduceData:
    name: str  # up to v12
    partition_data: Sequence[ProducePartitionProduceData]
    topic_id: bytes | None


class ProduceRequest:
    transactional_id: str | None
    acks: int
    timeout: int
    topic_data: Sequence[ProduceTopicProduceData]


class FetchPartition:
    partition: int
    fetch_offset: int
    partition_max_bytes: int
    log_start_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int
    replica_directory_id: bytes | None
    high_watermark: int


class FetchTopic:
    topic: str  # up to v12
    partitions: Sequence[FetchPartition]
    topic_id: bytes | None


class FetchForgottenTopic:
    topic: str  # up to v12
    partitions: Sequence[int]
    topic_id: bytes | None


class FetchReplicaState:
    replica_id: int
    replica_epoch: int


class FetchRequest:
    replica_id: int  # up to v14
    max_wait: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    topics: Sequence[FetchTopic]
    session_id: int
    session_epoch: int
    forgotten_topics_data: Sequence[FetchForgottenTopic]
    rack_id: str
    cluster_id: str | None
    replica_state: FetchReplicaState


class ListOffsetsPartition:
    partition_index: int
    timestamp: int
    current_leader_epoch: int


class ListOffsetsTopic:
    name: str
    partitions: Sequence[ListOffsetsPartition]


class ListOffsetsRequest:
    replica_id: int
    topics: Sequence[ListOffsetsTopic]
    isolation_level: int
    timeout: int


class MetadataRequestTopic:
    name: str | None
    topic_id: bytes | None


class MetadataRequest:
    topics: Sequence[MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool  # up to v10
    include_topic_authorized_operations: bool


class OffsetCommitRequestPartition:
    partition_index: int
    committed_offset: int
    committed_metadata: str | None
    committed_leader_epoch: int


class OffsetCommitRequestTopic:
    name: str
    partitions: Sequence[OffsetCommitRequestPartition]


class OffsetCommitRequest:
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    retention_time: int  # up to v4
    topics: Sequence[OffsetCommitRequestTopic]
    group_instance_id: str | None


class OffsetFetchRequestTopic:
    name: str  # up to v7
    partition_indexes: Sequence[int]  # up to v7


class OffsetFetchRequestTopics:
    name: str
    partition_indexes: Sequence[int]


class OffsetFetchRequestGroup:
    group_id: str
    topics: Sequence[OffsetFetchRequestTopics] | None
    member_id: str | None
    member_epoch: int


class OffsetFetchRequest:
    group_id: str  # up to v7
    topics: Sequence[OffsetFetchRequestTopic] | None  # up to v7
    require_stable: bool
    groups: Sequence[OffsetFetchRequestGroup]


class FindCoordinatorRequest:
    key: str  # up to v3
    key_type: int
    coordinator_keys: Sequence[str]


class JoinGroupRequestProtocol:
    name: str
    metadata: bytes


class JoinGroupRequest:
    group_id: str
    session_timeout: int
    member_id: str
    protocol_type: str
    protocols: Sequence[JoinGroupRequestProtocol]
    rebalance_timeout: int
    group_instance_id: str | None
    reason: str | None


class HeartbeatRequest:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class LeaveGroupMemberIdentity:
    member_id: str
    group_instance_id: str | None
    reason: str | None


class LeaveGroupRequest:
    group_id: str
    member_id: str  # up to v2
    members: Sequence[LeaveGroupMemberIdentity]


class SyncGroupRequestAssignment:
    member_id: str
    assignment: bytes


class SyncGroupRequest:
    group_id: str
    generation_id: int
    member_id: str
    assignments: Sequence[SyncGroupRequestAssignment]
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None


class DescribeGroupsRequest:
    groups: Sequence[str]
    include_authorized_operations: bool


class ListGroupsRequest:
    states_filter: Sequence[str]
    types_filter: Sequence[str]


class SaslHandshakeRequest:
    mechanism: str


class ApiVersionsRequest:
    client_software_name: str
    client_software_version: str


class CreateTopicsCreatableReplicaAssignment:
    partition_index: int
    broker_ids: Sequence[int]


class CreateTopicsCreatableTopicConfig:
    name: str
    value: str | None


class CreateTopicsCreatableTopic:
    name: str
    num_partitions: int
    replication_factor: int
    assignments: Sequence[CreateTopicsCreatableReplicaAssignment]
    configs: Sequence[CreateTopicsCreatableTopicConfig]


class CreateTopicsRequest:
    topics: Sequence[CreateTopicsCreatableTopic]
    timeout: int
    validate_only: bool


class DeleteTopicsDeleteTopicState:
    name: str | None
    topic_id: bytes | None


class DeleteTopicsRequest:
    topic_names: Sequence[str]  # up to v5
    timeout: int
    topics: Sequence[DeleteTopicsDeleteTopicState]


class DeleteRecordsPartition:
    partition_index: int
    offset: int


class DeleteRecordsTopic:
    name: str
    partitions: Sequence[DeleteRecordsPartition]


class DeleteRecordsRequest:
    topics: Sequence[DeleteRecordsTopic]
    timeout: int


class InitProducerIdRequest:
    transactional_id: str | None
    transaction_timeout: int
    producer_id: int
    producer_epoch: int


class OffsetForLeaderEpochOffsetForLeaderPartition:
    partition: int
    current_leader_epoch: int
    leader_epoch: int


class OffsetForLeaderEpochOffsetForLeaderTopic:
    topic: str
    partitions: Sequence[OffsetForLeaderEpochOffsetForLeaderPartition]


class OffsetForLeaderEpochRequest:
    topics: Sequence[OffsetForLeaderEpochOffsetForLeaderTopic]
    replica_id: int


class AddPartitionsToTxnTopic:
    name: str
    partitions: Sequence[int]


class AddPartitionsToTxnTransaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: Sequence[AddPartitionsToTxnTopic]


class AddPartitionsToTxnRequest:
    v3_and_below_transactional_id: str  # up to v3
    v3_and_below_producer_id: int  # up to v3
    v3_and_below_producer_epoch: int  # up to v3
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic]  # up to v3
    transactions: Sequence[AddPartitionsToTxnTransaction]


class AddOffsetsToTxnRequest:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


class EndTxnRequest:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


class WriteTxnMarkersWritableTxnMarkerTopic:
    name: str
    partition_indexes: Sequence[int]


class WriteTxnMarkersWritableTxnMarker:
    producer_id: int
    producer_epoch: int
    transaction_result: bool
    topics: Sequence[WriteTxnMarkersWritableTxnMarkerTopic]
    coordinator_epoch: int


class WriteTxnMarkersRequest:
    markers: Sequence[WriteTxnMarkersWritableTxnMarker]


class TxnOffsetCommitRequestPartition:
    partition_index: int
    committed_offset: int
    committed_metadata: str | None
    committed_leader_epoch: int


class TxnOffsetCommitRequestTopic:
    name: str
    partitions: Sequence[TxnOffsetCommitRequestPartition]


class TxnOffsetCommitRequest:
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    topics: Sequence[TxnOffsetCommitRequestTopic]
    generation_id: int
    member_id: str
    group_instance_id: str | None


class DescribeAclsRequest:
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


class CreateAclsAclCreation:
    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class CreateAclsRequest:
    creations: Sequence[CreateAclsAclCreation]


class DeleteAclsFilter:
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


class DeleteAclsRequest:
    filters: Sequence[DeleteAclsFilter]


class DescribeConfigsResource:
    resource_type: int
    resource_name: str
    configuration_keys: Sequence[str] | None


class DescribeConfigsRequest:
    resources: Sequence[DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool


class AlterConfigsAlterableConfig:
    name: str
    value: str | None


class AlterConfigsResource:
    resource_type: int
    resource_name: str
    configs: Sequence[AlterConfigsAlterableConfig]


class AlterConfigsRequest:
    resources: Sequence[AlterConfigsResource]
    validate_only: bool


class DescribeLogDirsDescribableLogDirTopic:
    topic: str
    partitions: Sequence[int]


class DescribeLogDirsRequest:
    topics: Sequence[DescribeLogDirsDescribableLogDirTopic] | None


class SaslAuthenticateRequest:
    auth_bytes: bytes


class CreatePartitionsAssignment:
    broker_ids: Sequence[int]


class CreatePartitionsTopic:
    name: str
    count: int
    assignments: Sequence[CreatePartitionsAssignment] | None


class CreatePartitionsRequest:
    topics: Sequence[CreatePartitionsTopic]
    timeout: int
    validate_only: bool


class CreateDelegationTokenCreatableRenewers:
    principal_type: str
    principal_name: str


class CreateDelegationTokenRequest:
    renewers: Sequence[CreateDelegationTokenCreatableRenewers]
    max_lifetime: int
    owner_principal_type: str | None
    owner_principal_name: str | None


class RenewDelegationTokenRequest:
    hmac: bytes
    renew_period: int


class ExpireDelegationTokenRequest:
    hmac: bytes
    expiry_time_period: int


class DescribeDelegationTokenOwner:
    principal_type: str
    principal_name: str


class DescribeDelegationTokenRequest:
    owners: Sequence[DescribeDelegationTokenOwner] | None


class DeleteGroupsRequest:
    groups_names: Sequence[str]


class ElectLeadersTopicPartitions:
    topic: str
    partitions: Sequence[int]


class ElectLeadersRequest:
    topic_partitions: Sequence[ElectLeadersTopicPartitions] | None
    timeout: int
    election_type: int


class IncrementalAlterConfigsAlterableConfig:
    name: str
    config_operation: int
    value: str | None


class IncrementalAlterConfigsAlterConfigsResource:
    resource_type: int
    resource_name: str
    configs: Sequence[IncrementalAlterConfigsAlterableConfig]


class IncrementalAlterConfigsRequest:
    resources: Sequence[IncrementalAlterConfigsAlterConfigsResource]
    validate_only: bool


class AlterPartitionReassignmentsReassignablePartition:
    partition_index: int
    replicas: Sequence[int] | None


class AlterPartitionReassignmentsReassignableTopic:
    name: str
    partitions: Sequence[AlterPartitionReassignmentsReassignablePartition]


class AlterPartitionReassignmentsRequest:
    timeout: int
    topics: Sequence[AlterPartitionReassignmentsReassignableTopic]
    allow_replication_factor_change: bool


class ListPartitionReassignmentsTopics:
    name: str
    partition_indexes: Sequence[int]


class ListPartitionReassignmentsRequest:
    timeout: int
    topics: Sequence[ListPartitionReassignmentsTopics] | None


class OffsetDeleteRequestPartition:
    partition_index: int


class OffsetDeleteRequestTopic:
    name: str
    partitions: Sequence[OffsetDeleteRequestPartition]


class OffsetDeleteRequest:
    group_id: str
    topics: Sequence[OffsetDeleteRequestTopic]


class DescribeClientQuotasComponentData:
    entity_type: str
    match_type: int
    match: str | None


class DescribeClientQuotasRequest:
    components: Sequence[DescribeClientQuotasComponentData]
    strict: bool


class AlterClientQuotasEntityData:
    entity_type: str
    entity_name: str | None


class AlterClientQuotasOpData:
    key: str
    value: float
    remove: bool


class AlterClientQuotasEntryData:
    entity: Sequence[AlterClientQuotasEntityData]
    ops: Sequence[AlterClientQuotasOpData]


class AlterClientQuotasRequest:
    entries: Sequence[AlterClientQuotasEntryData]
    validate_only: bool


class DescribeUserScramCredentialsUserName:
    name: str


class DescribeUserScramCredentialsRequest:
    users: Sequence[DescribeUserScramCredentialsUserName] | None


class AlterUserScramCredentialsScramCredentialDeletion:
    name: str
    mechanism: int


class AlterUserScramCredentialsScramCredentialUpsertion:
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class AlterUserScramCredentialsRequest:
    deletions: Sequence[AlterUserScramCredentialsScramCredentialDeletion]
    upsertions: Sequence[AlterUserScramCredentialsScramCredentialUpsertion]


class DescribeQuorumPartitionData:
    partition_index: int


class DescribeQuorumTopicData:
    topic_name: str
    partitions: Sequence[DescribeQuorumPartitionData]


class DescribeQuorumRequest:
    topics: Sequence[DescribeQuorumTopicData]


class UpdateFeaturesFeatureUpdateKey:
    feature: str
    max_version_level: int
    allow_downgrade: bool  # up to v0
    upgrade_type: int


class UpdateFeaturesRequest:
    timeout: int
    feature_updates: Sequence[UpdateFeaturesFeatureUpdateKey]
    validate_only: bool


class DescribeClusterRequest:
    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool


class DescribeProducersTopicRequest:
    name: str
    partition_indexes: Sequence[int]


class DescribeProducersRequest:
    topics: Sequence[DescribeProducersTopicRequest]


class UnregisterBrokerRequest:
    broker_id: int


class DescribeTransactionsRequest:
    transactional_ids: Sequence[str]


class ListTransactionsRequest:
    state_filters: Sequence[str]
    producer_id_filters: Sequence[int]
    duration_filter: int
    transactional_id_pattern: str | None


class ConsumerGroupHeartbeatTopicPartitions:
    topic_id: bytes | None
    partitions: Sequence[int]


class ConsumerGroupHeartbeatRequest:
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout: int
    subscribed_topic_names: Sequence[str] | None
    server_assignor: str | None
    topic_partitions: Sequence[ConsumerGroupHeartbeatTopicPartitions] | None
    subscribed_topic_regex: str | None


class ConsumerGroupDescribeRequest:
    group_ids: Sequence[str]
    include_authorized_operations: bool


class ListConfigResourcesRequest:
    resource_types: Sequence[int]


class DescribeTopicPartitionsTopicRequest:
    name: str


class DescribeTopicPartitionsCursor:
    topic_name: str
    partition_index: int


class DescribeTopicPartitionsRequest:
    topics: Sequence[DescribeTopicPartitionsTopicRequest]
    response_partition_limit: int
    cursor: DescribeTopicPartitionsCursor | None


class ShareGroupHeartbeatRequest:
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: Sequence[str] | None


class ShareGroupDescribeRequest:
    group_ids: Sequence[str]
    include_authorized_operations: bool


class ShareFetchAcknowledgementBatch:
    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]


class ShareFetchFetchPartition:
    partition_index: int
    acknowledgement_batches: Sequence[ShareFetchAcknowledgementBatch]


class ShareFetchFetchTopic:
    topic_id: bytes | None
    partitions: Sequence[ShareFetchFetchPartition]


class ShareFetchForgottenTopic:
    topic_id: bytes | None
    partitions: Sequence[int]


class ShareFetchRequest:
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    topics: Sequence[ShareFetchFetchTopic]
    forgotten_topics_data: Sequence[ShareFetchForgottenTopic]


class ShareAcknowledgeAcknowledgementBatch:
    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]


class ShareAcknowledgeAcknowledgePartition:
    partition_index: int
    acknowledgement_batches: Sequence[ShareAcknowledgeAcknowledgementBatch]


class ShareAcknowledgeAcknowledgeTopic:
    topic_id: bytes | None
    partitions: Sequence[ShareAcknowledgeAcknowledgePartition]


class ShareAcknowledgeRequest:
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    topics: Sequence[ShareAcknowledgeAcknowledgeTopic]


class AddRaftVoterListener:
    name: str
    host: str
    port: int


class AddRaftVoterRequest:
    cluster_id: str | None
    timeout: int
    voter_id: int
    voter_directory_id: bytes | None
    listeners: Sequence[AddRaftVoterListener]


class RemoveRaftVoterRequest:
    cluster_id: str | None
    voter_id: int
    voter_directory_id: bytes | None


class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str
    partitions: Sequence[int]


class DescribeShareGroupOffsetsRequestGroup:
    group_id: str
    topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None


class DescribeShareGroupOffsetsRequest:
    groups: Sequence[DescribeShareGroupOffsetsRequestGroup]


class AlterShareGroupOffsetsRequestPartition:
    partition_index: int
    start_offset: int


class AlterShareGroupOffsetsRequestTopic:
    topic_name: str
    partitions: Sequence[AlterShareGroupOffsetsRequestPartition]


class AlterShareGroupOffsetsRequest:
    group_id: str
    topics: Sequence[AlterShareGroupOffsetsRequestTopic]


class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str


class DeleteShareGroupOffsetsRequest:
    group_id: str
    topics: Sequence[DeleteShareGroupOffsetsRequestTopic]
