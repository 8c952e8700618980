"""Every API with what it asks of its clients: requests, the ACLs that are just enough and such as are not, and what
an answer says about it. The same for a node in this process and for Apache Kafka over SASL.

Each case is asked by four users: without an ACL, with a wrong one, with the right ones, and by a super user.
"""

import dataclasses
import enum
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ottla.ids import uuid_text
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.wire.schema import Field, Struct, request_struct
from support.kio_oracle import request_entity, to_kio
from support.raw_batches import enclosed, raw_record

STATES = ("none", "wrong", "right", "super")
ADMIN = "admin"
TOPICS = ("orders", *(f"doomed-{state}" for state in STATES))
Need = tuple[Operation, Resource, str]
T, G, C, X = Resource.TOPIC, Resource.GROUP, Resource.CLUSTER, Resource.TRANSACTIONAL_ID
O = Operation  # noqa: E741


class Case(NamedTuple):
    """`fields` by state, since what is made or deleted by one user is not there for the next."""

    name: str
    key: int
    version: int
    fields: Callable[[str, Mapping[str, uuid.UUID]], dict[str, Any]]
    right: tuple[Need, ...]
    wrong: tuple[Need, ...]
    differs: str = ""
    """Why allowed requests are answered differently here and in Kafka; what is refused never is."""

    def user(self, state: str) -> str:
        return ADMIN if state == "super" else f"{self.name}-{state}"

    def bindings(self) -> Iterator[AclBinding]:
        for state, needs in (("right", self.right), ("wrong", self.wrong)):
            for operation, resource, name in needs:
                yield AclBinding(
                    resource, PatternType.LITERAL, name, f"User:{self.user(state)}", "*", operation, Permission.ALLOW
                )

    def request(self, state: str, ids: Mapping[str, uuid.UUID]) -> Any:
        struct = request_struct(self.key, self.version)
        return to_kio(request_entity(self.key, self.version), filled(struct, self.fields(state, ids)))


def filled(struct: Struct, given: Mapping[str, Any]) -> dict[str, Any]:
    """With zeros for all that is not given."""
    unknown = given.keys() - {field.name for field in struct.fields}
    assert not unknown, f"{struct.name} has no {unknown}"
    return {field.name: _value(field, given) for field in struct.fields}


def _value(field: Field, given: Mapping[str, Any]) -> Any:
    if field.name not in given:
        if field.is_array:
            return ()
        zero: dict[str, Any] = {
            "string": None if field.nullable else "",
            "bytes": b"",
            "bool": False,
            "uuid": bytes(16),
        }
        return None if field.kind in ("records", "struct") else zero.get(field.kind, 0)
    value = given[field.name]
    if field.struct is None or value is None:
        return value
    return [filled(field.struct, each) for each in value] if field.is_array else filled(field.struct, value)


def on(*needs: Need) -> tuple[Need, ...]:
    return needs


def cluster(operation: Operation) -> Need:
    return operation, C, CLUSTER_NAME


def case(
    name: str,
    key: int,
    version: int,
    right: tuple[Need, ...],
    wrong: tuple[Need, ...],
    fields: Callable[[str, Mapping[str, uuid.UUID]], dict[str, Any]] | dict[str, Any] | None = None,
    differs: str = "",
) -> Case:
    made = fields if callable(fields) else lambda state, ids: dict(fields or {})
    return Case(name, key, version, made, right, wrong, differs)


def batch() -> bytes:
    return enclosed(raw_record(0, b"value"), count=1)


ORDERS = {"name": "orders", "partitions": [{"partition_index": 0}]}
DESCRIBE_C, ALTER_C = cluster(O.DESCRIBE), cluster(O.ALTER)
NOT_DESCRIBE_C = on(cluster(O.CREATE), (O.DESCRIBE, T, "orders"))
NOT_ALTER_C = on(cluster(O.DESCRIBE), cluster(O.CLUSTER_ACTION))
TXN = {"transactional_id": "mover", "producer_id": 1, "producer_epoch": 0}
ACL_FILTER = {"resource_type_filter": 2, "pattern_type_filter": 3, "resource_name_filter": "nothing", "operation": 1,
              "permission_type": 1, "principal_filter": None, "host_filter": None}  # fmt: skip


def _produce_by_id(state: str, ids: Mapping[str, uuid.UUID]) -> dict[str, Any]:
    data = [{"index": 0, "records": batch()}]
    return {"acks": 1, "timeout": 5000, "topic_data": [{"topic_id": ids["orders"].bytes, "partition_data": data}]}


def _fetch_by_id(state: str, ids: Mapping[str, uuid.UUID]) -> dict[str, Any]:
    part = {"partition": 0, "current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 100}
    return {"session_epoch": -1, "max_bytes": 100, "replica_state": {"replica_id": -1, "replica_epoch": -1},
            "topics": [{"topic_id": ids["orders"].bytes, "partitions": [part]}]}  # fmt: skip


def _share_part(ids: Mapping[str, uuid.UUID]) -> list[dict[str, Any]]:
    return [{"topic_id": ids["orders"].bytes, "partitions": [{"partition_index": 0}]}]


PRODUCE = {"acks": 1, "timeout": 5000,
           "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": batch()}]},
                          {"name": "no-such", "partition_data": [{"index": 0, "records": batch()}]}]}  # fmt: skip
FETCH = {"session_epoch": -1, "max_bytes": 100, "replica_id": -1,
         "topics": [{"topic": topic, "partitions": [{"partition": 0, "current_leader_epoch": -1,
                                                    "last_fetched_epoch": -1, "partition_max_bytes": 100}]}
                    for topic in ("orders", "no-such")]}  # fmt: skip
TIMESTAMP = {"partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -2}]}
COMMITTED = {"partitions": [{"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}]}
EPOCH = {"partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}
BOTH = ("orders", "no-such")
READ_BOTH = on((O.READ, T, "orders"), (O.READ, T, "no-such"))
DESCRIBE_BOTH = on((O.DESCRIBE, T, "orders"), (O.DESCRIBE, T, "no-such"))
OTHER_TOPIC = on((O.ALL, T, "others"))

CASES = [
    case("produce", 0, 12, on((O.WRITE, T, "orders"), (O.WRITE, T, "no-such")), on((O.READ, T, "orders")), PRODUCE),
    case("produce-by-id", 0, 13, on((O.WRITE, T, "orders")), OTHER_TOPIC, _produce_by_id),
    case("fetch", 1, 12, READ_BOTH, on((O.WRITE, T, "orders")), FETCH),
    case("fetch-by-id", 1, 18, on((O.READ, T, "orders")), OTHER_TOPIC, _fetch_by_id),
    case("list-offsets", 2, 10, DESCRIBE_BOTH, on((O.ALTER_CONFIGS, T, "orders")),
         {"replica_id": -1, "timeout": 5000, "topics": [{"name": name, **TIMESTAMP} for name in BOTH]}),
    case("metadata", 3, 13, DESCRIBE_BOTH, on((O.ALTER_CONFIGS, T, "orders")),
         {"include_topic_authorized_operations": True, "topics": [{"name": name} for name in BOTH]}),
    case("metadata-by-id", 3, 13, on((O.READ, T, "orders")), OTHER_TOPIC,
         lambda state, ids: {"topics": [{"topic_id": ids["orders"].bytes, "name": None}]}),
    case("metadata-all", 3, 13, on((O.WRITE, T, "orders")), OTHER_TOPIC, {"topics": None}, "a super user sees all"),
    case("metadata-cluster", 3, 10, on(DESCRIBE_C), NOT_DESCRIBE_C,
         {"topics": [], "include_cluster_authorized_operations": True}),
    case("metadata-create", 3, 13, on((O.DESCRIBE, T, "made-right"), (O.CREATE, T, "made-right")),
         on((O.DESCRIBE, T, "made-wrong")),
         lambda state, ids: {"topics": [{"name": f"made-{state}"}], "allow_auto_topic_creation": True},
         "a new topic's leader may be known already"),
    case("offset-commit", 8, 9, on((O.READ, G, "g8"), (O.READ, T, "orders"), (O.READ, T, "no-such")),
         on((O.READ, G, "g8"), (O.DESCRIBE, T, "orders")),
         {"group_id": "g8", "generation_id_or_member_epoch": -1,
          "topics": [{"name": name, **COMMITTED} for name in BOTH]}),
    case("offset-commit-group", 8, 9, on((O.READ, G, "g8"), (O.READ, T, "orders")), on((O.DESCRIBE, G, "g8")),
         {"group_id": "g8", "generation_id_or_member_epoch": -1, "topics": [{"name": "orders", **COMMITTED}]}),
    case("offset-fetch", 9, 9, on((O.DESCRIBE, G, "g9"), (O.DESCRIBE, T, "orders")), on((O.DESCRIBE, G, "g9")),
         {"groups": [{"group_id": "g9", "member_epoch": -1, "member_id": None,
                      "topics": [{"name": "orders", "partition_indexes": [0]}]}]}),
    case("offset-fetch-old", 9, 5, on((O.READ, G, "g9"), (O.READ, T, "orders")), on((O.DELETE, G, "others")),
         {"group_id": "g9", "topics": [{"name": "orders", "partition_indexes": [0]}]}),
    case("find-group", 10, 6, on((O.DESCRIBE, G, "g10")), on((O.DELETE, G, "others")), {"coordinator_keys": ["g10"]}),
    case("find-transaction", 10, 6, on((O.DESCRIBE, X, "mover")), on((O.WRITE, X, "others")),
         {"key_type": 1, "coordinator_keys": ["mover"]}),
    case("join-group", 11, 9, on((O.READ, G, "g11")), on((O.DESCRIBE, G, "g11")),
         {"group_id": "g11", "session_timeout": 10000, "rebalance_timeout": 10000, "protocol_type": "consumer",
          "protocols": [{"name": "range", "metadata": b""}]}),
    case("heartbeat", 12, 4, on((O.READ, G, "g12")), on((O.DESCRIBE, G, "g12")), {"group_id": "g12"}),
    case("leave-group", 13, 5, on((O.READ, G, "g13")), on((O.DELETE, G, "g13")),
         {"group_id": "g13", "members": [{"member_id": "m"}]}),
    case("sync-group", 14, 5, on((O.READ, G, "g14")), on((O.DESCRIBE, G, "g14")),
         {"group_id": "g14", "protocol_type": "consumer", "protocol_name": "range"}),
    case("describe-groups", 15, 6, on((O.DESCRIBE, G, "g15")), on((O.ALL, G, "others")),
         {"groups": ["g15"], "include_authorized_operations": True}),
    case("list-groups", 16, 5, on((O.DESCRIBE, G, "g8")), on((O.DESCRIBE_CONFIGS, G, "g8")), None,
         "a super user sees all"),
    case("create-topics", 19, 7, on((O.CREATE, T, "new-right"), (O.DESCRIBE_CONFIGS, T, "new-right")),
         on((O.WRITE, T, "new-wrong")),
         lambda state, ids: {"timeout": 5000, "topics": [
             {"name": f"new-{state}", "num_partitions": 1, "replication_factor": 1}]},
         "settings differ"),
    case("create-topics-unseen", 19, 7, on((O.CREATE, T, "unseen-right")), on((O.CREATE, T, "others")),
         lambda state, ids: {"timeout": 5000, "topics": [
             {"name": f"unseen-{state}", "num_partitions": 1, "replication_factor": 1}]},
         "settings differ"),
    case("delete-topics", 20, 6, on((O.DELETE, T, "doomed-right")), on((O.ALTER, T, "doomed-wrong")),
         lambda state, ids: {"timeout": 5000, "topics": [{"name": f"doomed-{state}"}]}),
    case("delete-by-id", 20, 6, on((O.DELETE, T, "orders"), (O.ALTER, T, "orders")), on((O.DESCRIBE, T, "orders")),
         lambda state, ids: {"timeout": 5000, "topics": [{"name": None, "topic_id": (
             ids["orders"] if state in ("none", "wrong") else uuid.UUID(int=7)).bytes}]}),
    case("delete-unknown", 20, 6, on((O.DESCRIBE, T, "no-such")), on((O.DELETE, T, "others")),
         {"timeout": 5000, "topics": [{"name": "no-such"}]}),
    case("delete-records", 21, 2, on((O.DELETE, T, "orders")), on((O.WRITE, T, "orders")),
         {"timeout": 5000, "topics": [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 0}]}]}),
    case("init-producer-id", 22, 5, on((O.WRITE, T, "any-topic")), on((O.READ, T, "orders")),
         {"transactional_id": None, "producer_id": -1, "producer_epoch": -1, "transaction_timeout": 5000}),
    case("init-idempotent", 22, 5, on(cluster(O.IDEMPOTENT_WRITE)), NOT_ALTER_C,
         {"transactional_id": None, "producer_id": -1, "producer_epoch": -1, "transaction_timeout": 5000}),
    case("init-transactional", 22, 5, on((O.WRITE, X, "starter")), on((O.DESCRIBE, X, "starter")),
         {"transactional_id": "starter", "producer_id": -1, "producer_epoch": -1, "transaction_timeout": 5000}),
    case("leader-epoch", 23, 4, on((O.DESCRIBE, T, "orders")), on((O.DESCRIBE_CONFIGS, T, "orders")),
         {"replica_id": -1, "topics": [{"topic": "orders", **EPOCH}]}),
    case("add-partitions", 24, 3, on((O.WRITE, X, "mover"), (O.WRITE, T, "orders")), on((O.WRITE, X, "mover")),
         {"v3_and_below_transactional_id": "mover", "v3_and_below_producer_id": 1, "v3_and_below_producer_epoch": 0,
          "v3_and_below_topics": [{"name": "orders", "partitions": [0]}]}),
    case("add-partitions-id", 24, 3, on((O.WRITE, X, "mover"), (O.WRITE, T, "orders")), on((O.WRITE, T, "orders")),
         {"v3_and_below_transactional_id": "mover", "v3_and_below_producer_id": 1, "v3_and_below_producer_epoch": 0,
          "v3_and_below_topics": [{"name": "orders", "partitions": [0]}]}),
    case("add-partitions-broker", 24, 5, on(cluster(O.CLUSTER_ACTION)), on((O.WRITE, X, "mover"), ALTER_C),
         {"transactions": [{**TXN, "verify_only": True, "topics": [{"name": "orders", "partitions": [0]}]}]}),
    case("add-offsets", 25, 4, on((O.WRITE, X, "mover"), (O.READ, G, "g25")), on((O.WRITE, X, "mover")),
         {**TXN, "group_id": "g25"}),
    case("end-txn", 26, 5, on((O.WRITE, X, "mover")), on((O.DESCRIBE, X, "mover")), {**TXN, "committed": True}),
    case("write-markers", 27, 1, on(ALTER_C), on(DESCRIBE_C),
         {"markers": [{"producer_id": 1, "topics": [{"name": "orders", "partition_indexes": [7]}]}]}),
    case("txn-commit", 28, 5, on((O.WRITE, X, "mover"), (O.READ, G, "g28"), (O.READ, T, "no-such")),
         on((O.WRITE, X, "mover"), (O.READ, G, "g28")),
         {**TXN, "group_id": "g28", "generation_id": -1, "topics": [{"name": "no-such", **COMMITTED}]}),
    case("txn-commit-group", 28, 5, on((O.WRITE, X, "mover"), (O.READ, G, "g28"), (O.READ, T, "no-such")),
         on((O.WRITE, X, "mover"), (O.DESCRIBE, G, "g28")),
         {**TXN, "group_id": "g28", "generation_id": -1, "topics": [{"name": "no-such", **COMMITTED}]}),
    case("describe-acls", 29, 3, on(DESCRIBE_C), NOT_DESCRIBE_C, ACL_FILTER),
    case("create-acls", 30, 3, on(ALTER_C), NOT_ALTER_C,
         {"creations": [{"resource_type": 2, "resource_name": "", "resource_pattern_type": 3, "principal": "User:x",
                         "host": "*", "operation": 3, "permission_type": 3}]}),
    case("delete-acls", 31, 3, on(ALTER_C), NOT_ALTER_C, {"filters": [ACL_FILTER]}),
    case("describe-configs", 32, 4,
         on((O.DESCRIBE_CONFIGS, T, "orders"), (O.ALTER_CONFIGS, G, "g32"), cluster(O.DESCRIBE_CONFIGS)),
         on((O.DESCRIBE, T, "orders"), (O.READ, G, "g32"), DESCRIBE_C),
         {"resources": [{"resource_type": kind, "resource_name": name, "configuration_keys": ["no-such"]}
                        for kind, name in ((2, "orders"), (32, "g32"), (4, ""))]}),
    case("alter-configs", 33, 2, on((O.ALTER_CONFIGS, T, "orders")), on((O.DESCRIBE_CONFIGS, T, "orders")),
         {"validate_only": True, "resources": [{"resource_type": 2, "resource_name": "orders"}]}),
    case("describe-log-dirs", 35, 4, on(DESCRIBE_C), NOT_DESCRIBE_C, {"topics": []}, "as many as there are log dirs"),
    case("create-partitions", 37, 3, on((O.ALTER, T, "orders")), on((O.CREATE, T, "orders")),
         {"timeout": 5000, "validate_only": True, "topics": [{"name": "orders", "count": 2, "assignments": None}]}),
    case("delete-groups", 42, 2, on((O.DELETE, G, "g42")), on((O.READ, G, "g42")), {"groups_names": ["g42"]}),
    case("elect-leaders", 43, 2, on(ALTER_C), NOT_ALTER_C,
         {"timeout": 5000, "topic_partitions": [{"topic": "no-such", "partitions": [0]}]}),
    case("change-configs", 44, 1, on((O.ALTER_CONFIGS, T, "orders"), cluster(O.ALTER_CONFIGS)),
         on((O.ALTER, T, "orders"), ALTER_C),
         {"validate_only": True, "resources": [
             {"resource_type": kind, "resource_name": name, "configs": [
                 {"name": setting, "config_operation": 0, "value": "100000"}]}
             for kind, name, setting in ((2, "orders", "retention.ms"), (4, "", "log.retention.ms"))]}),
    case("reassign", 45, 1, on(ALTER_C), NOT_ALTER_C,
         {"timeout": 5000, "topics": [{"name": "no-such", "partitions": [{"partition_index": 0, "replicas": None}]}]},
         "refused, Kafka repeats the partitions"),
    case("list-reassignments", 46, 0, on(DESCRIBE_C), NOT_DESCRIBE_C, {"timeout": 5000, "topics": None}),
    case("offset-delete", 47, 0, on((O.DELETE, G, "g8"), (O.READ, T, "no-such")), on((O.DELETE, G, "g8")),
         {"group_id": "g8", "topics": [{"name": "no-such", "partitions": [{"partition_index": 0}]}]}),
    case("offset-delete-group", 47, 0, on((O.DELETE, G, "g8"), (O.READ, T, "no-such")), on((O.READ, G, "g8")),
         {"group_id": "g8", "topics": [{"name": "no-such", "partitions": [{"partition_index": 0}]}]}),
    case("describe-quotas", 48, 1, on(cluster(O.DESCRIBE_CONFIGS)), on(DESCRIBE_C, ALTER_C), {}),
    case("alter-quotas", 49, 1, on(cluster(O.ALTER_CONFIGS)), on(cluster(O.DESCRIBE_CONFIGS), ALTER_C),
         {"validate_only": True, "entries": [{"entity": [{"entity_type": "user", "entity_name": "x"}], "ops": [
             {"key": "producer_byte_rate", "value": 1000.0}]}]}),
    case("describe-users", 50, 0, on(DESCRIBE_C), NOT_DESCRIBE_C, {"users": [{"name": "nobody"}]}),
    case("alter-users", 51, 0, on(ALTER_C), NOT_ALTER_C, {"deletions": [{"name": "nobody", "mechanism": 1}]}),
    case("describe-quorum", 55, 2, on(DESCRIBE_C), NOT_DESCRIBE_C,
         {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
         "brokers alone have no endpoints"),
    case("update-features", 57, 2, on(ALTER_C), NOT_ALTER_C,
         {"timeout": 5000, "validate_only": True,
          "feature_updates": [{"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}]}),
    case("describe-cluster", 60, 2, on(DESCRIBE_C), NOT_DESCRIBE_C,
         {"include_cluster_authorized_operations": True, "endpoint_type": 1}),
    case("describe-producers", 61, 0, on((O.READ, T, "orders"), (O.READ, T, "no-such")), on((O.DESCRIBE, T, "orders")),
         {"topics": [{"name": name, "partition_indexes": [0]} for name in BOTH]}),
    case("unregister-broker", 64, 0, on(ALTER_C), NOT_ALTER_C, {"broker_id": 99}),
    case("describe-transactions", 65, 0, on((O.DESCRIBE, X, "mover")), on((O.DESCRIBE, X, "others")),
         {"transactional_ids": ["mover"]}),
    case("list-transactions", 66, 2, on((O.DESCRIBE, X, "starter")), on((O.DESCRIBE, X, "others")),
         {"duration_filter": -1}),
    case("consumer-heartbeat", 68, 1, on((O.READ, G, "g68"), (O.DESCRIBE, T, "orders")), on((O.READ, G, "g68")),
         lambda state, ids: {"group_id": "g68", "member_id": f"m-{state}", "rebalance_timeout": 5000,
                             "subscribed_topic_names": ["orders"], "topic_partitions": []}),
    case("consumer-heartbeat-group", 68, 1, on((O.READ, G, "g68"), (O.READ, T, "orders")), on((O.READ, T, "orders")),
         lambda state, ids: {"group_id": "g68", "member_id": f"n-{state}", "rebalance_timeout": 5000,
                             "subscribed_topic_names": ["orders"], "topic_partitions": []}),
    case("describe-consumers", 69, 1, on((O.DESCRIBE, G, "g68"), (O.DESCRIBE, T, "orders")), on((O.DESCRIBE, G, "g68")),
         {"group_ids": ["g68"], "include_authorized_operations": True}),
    case("describe-consumers-group", 69, 1, on((O.DESCRIBE, G, "g69")), on((O.DESCRIBE_CONFIGS, G, "g69")),
         {"group_ids": ["g69"], "include_authorized_operations": True}),
    case("list-resources", 74, 1, on(cluster(O.DESCRIBE_CONFIGS)), on(DESCRIBE_C), {"resource_types": [32]}),
    case("describe-partitions", 75, 0, DESCRIBE_BOTH, on((O.ALTER_CONFIGS, T, "orders")),
         {"topics": [{"name": name} for name in BOTH], "response_partition_limit": 100, "cursor": None}),
    case("describe-partitions-all", 75, 0, on((O.READ, T, "orders")), OTHER_TOPIC,
         {"topics": [], "response_partition_limit": 100, "cursor": None}, "a super user sees all"),
    case("share-heartbeat", 76, 1, on((O.READ, G, "g76"), (O.DESCRIBE, T, "orders")), on((O.READ, G, "g76")),
         lambda state, ids: {"group_id": "g76", "member_id": f"m-{state}", "subscribed_topic_names": ["orders"]}),
    case("describe-shares", 77, 1, on((O.DESCRIBE, G, "g77")), on((O.DESCRIBE_CONFIGS, G, "g77")),
         {"group_ids": ["g77"], "include_authorized_operations": True}),
    case("share-fetch", 78, 1, on((O.READ, G, "g78"), (O.READ, T, "orders")), on((O.READ, G, "g78")),
         lambda state, ids: {"group_id": "g78", "member_id": uuid_text(uuid.UUID(int=STATES.index(state) + 1)),
                             "max_bytes": 100, "max_wait": 200, "max_records": 1, "topics": _share_part(ids)},
         "a group of nobody"),
    case("share-fetch-group", 78, 1, on((O.READ, G, "g78"), (O.READ, T, "orders")), on((O.READ, T, "orders")),
         lambda state, ids: {"group_id": "g78", "member_id": uuid_text(uuid.UUID(int=STATES.index(state) + 11)),
                             "max_bytes": 100, "max_wait": 200, "max_records": 1, "topics": _share_part(ids)},
         "a group of nobody"),
    case("share-acknowledge", 79, 1, on((O.READ, G, "g79"), (O.READ, T, "orders")), on((O.DESCRIBE, G, "g79")),
         lambda state, ids: {"group_id": "g79", "member_id": uuid_text(uuid.UUID(int=99)), "share_session_epoch": 1,
                             "topics": _share_part(ids)}),
    case("add-voter", 80, 0, on(ALTER_C), NOT_ALTER_C, {"cluster_id": "other", "voter_id": 7}, "fixed voters"),
    case("remove-voter", 81, 0, on(ALTER_C), NOT_ALTER_C, {"cluster_id": "other", "voter_id": 7}, "fixed voters"),
    case("describe-share-offsets", 90, 0, on((O.DESCRIBE, G, "g90"), (O.DESCRIBE, T, "orders")),
         on((O.DESCRIBE, G, "g90")),
         {"groups": [{"group_id": "g90", "topics": [{"topic_name": "orders", "partitions": [0]}]}]}),
    case("describe-share-offsets-group", 90, 0, on((O.DESCRIBE, G, "g90"), (O.DESCRIBE, T, "orders")),
         on((O.DESCRIBE, T, "orders")),
         {"groups": [{"group_id": "g90", "topics": [{"topic_name": "orders", "partitions": [0]}]}]}),
    case("alter-share-offsets", 91, 0, on((O.READ, G, "g91"), (O.READ, T, "orders")), on((O.DESCRIBE, G, "g91")),
         {"group_id": "g91", "topics": [{"topic_name": "orders", "partitions": [{"partition_index": 0}]}]},
         "Kafka 4.1.1 says that it is done, of any group, and does nothing"),
    case("delete-share-offsets", 92, 0, on((O.DELETE, G, "g92"), (O.READ, T, "orders")), on((O.READ, G, "g92")),
         {"group_id": "g92", "topics": [{"topic_name": "orders"}]}),
]  # fmt: skip

NAMES = {"name", "topic", "topic_name", "group_id", "transactional_id", "resource_name", "key", "group"}


def verdict(answer: Any) -> Any:
    """Of an answer: its codes, its operations, and what it names."""
    if isinstance(answer, tuple | list):
        found = [one for each in answer if (one := verdict(each)) not in (None, {})]
        return sorted(found, key=repr) or None
    if not dataclasses.is_dataclass(answer):
        return None
    said: dict[str, Any] = {}
    for field in dataclasses.fields(answer):
        value = getattr(answer, field.name)
        if field.name.endswith("error_code"):
            said[field.name] = int(value.value if isinstance(value, enum.Enum) else value)
        elif field.name.endswith("authorized_operations") or (field.name in NAMES and isinstance(value, str | None)):
            said[field.name] = value
        elif isinstance(value, tuple) and (inner := verdict(value)):
            said[field.name] = inner
    return said


REFUSALS = {29, 30, 31, 53, 65}


def refusals(said: Any) -> set[int]:
    """Codes of authorization anywhere in it."""
    if isinstance(said, list):
        return set().union(*map(refusals, said)) if said else set()
    if isinstance(said, dict):
        own = {value for name, value in said.items() if name.endswith("error_code") and value in REFUSALS}
        return own.union(*(refusals(value) for value in said.values()))
    return set()


def assert_same(case: Case, state: str, ours: Any, kafkas: Any) -> None:
    """All that is said to whom something is refused, and to all others unless the case tells why not."""
    if case.differs and state in ("right", "super"):
        assert refusals(ours) == refusals(kafkas), case.differs
    else:
        assert json.loads(json.dumps(ours)) == kafkas
