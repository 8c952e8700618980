"""All that clients see of one broker's data, as values that JSON can keep, so that two brokers can be compared."""

import dataclasses
import hashlib
from collections.abc import Iterable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from golden.share_groups import ShareConversation
from support.frames import Connection
from support.librdkafka import DEADLINE_S, make_consumer
from support.process import BrokerProcess

__all__ = ["BROKER", "TOPIC", "Groups", "Talk", "observed", "offsets"]

# Of values that are longer only a digest is kept.
SHOWN_BYTES_MAX = 60
LEVELS = ("read_committed", "read_uncommitted")
TOPIC, BROKER = 2, 4
TOPICS_OWN, BROKERS_OWN, ALL_BROKERS = 1, 2, 3  # where a config comes from, when somebody has set it
# They say how the broker is at this moment, not what it keeps.
MOMENTARY = ("throttle_time", "authorized_operations", "host", "client_host", "current_txn_start_offset_time")


class Talk(ShareConversation):
    """Any request, as keywords; the answer is what JSON can keep."""

    def told(self, api: str, version: int, **values: Any) -> Any:
        return _plain(super().told(api, version, **values))


@dataclasses.dataclass(frozen=True)
class Groups:
    """Names, by kind."""

    classic: tuple[str, ...]
    consumer: tuple[str, ...]
    share: tuple[str, ...]


def observed(broker: BrokerProcess, groups: Groups, transactional_ids: Iterable[str]) -> dict[str, Any]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topics = {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=DEADLINE_S).topics.items()}
    mine = {name: count for name, count in sorted(topics.items()) if not name.startswith("__")}
    with Connection(broker.port) as connection:
        talk = Talk(connection)
        return {
            "cluster": _cluster(talk, topics),
            "records": {level: _records(broker.bootstrap, mine, level) for level in LEVELS},
            "configs": _configs(talk, [*((TOPIC, one) for one in mine), (BROKER, "1"), (BROKER, "")]),
            "quotas": talk.told("describe_client_quotas", 1, components=(), strict=False)["entries"],
            "groups": _groups(talk, groups),
            "offsets": offsets(talk, groups.classic + groups.consumer),
            "transactions": talk.told("describe_transactions", 0, transactional_ids=tuple(transactional_ids)),
            "producers": _producers(talk, mine),
        }


def _record(message: Message) -> list[Any]:
    """Offset, time, key, value, headers."""
    headers = [[name, _shown(value)] for name, value in message.headers() or ()]
    return [message.offset(), message.timestamp()[1], _shown(message.key()), _shown(message.value()), headers]


def offsets(talk: Talk, groups: Iterable[str]) -> dict[str, list[list[Any]]]:
    """Of each group: topic, partition, offset, metadata."""
    asked = tuple({"group_id": group, "topics": None} for group in groups)
    return {
        group["group_id"]: sorted(
            [topic["name"], one["partition_index"], one["committed_offset"], one["metadata"]]
            for topic in group["topics"]
            for one in topic["partitions"]
        )
        for group in talk.told("offset_fetch", 8, groups=asked, require_stable=False)["groups"]
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        names = [one.name for one in dataclasses.fields(value) if one.name not in MOMENTARY]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, bool | float) or value is None:
        return value
    return int(value) if isinstance(value, int) else value.hex() if isinstance(value, bytes) else str(value)


def _shown(data: bytes | None) -> str | None:
    if data is None or len(data) <= SHOWN_BYTES_MAX:
        return None if data is None else data.decode()
    return f"{len(data)} bytes {hashlib.sha256(data).hexdigest()[:16]}"


def _records(bootstrap: str, topics: dict[str, int], level: str) -> dict[str, list[list[Any]]]:
    """By partition, up to where each ends now."""
    places = [
        TopicPartition(topic, index, OFFSET_BEGINNING) for topic, count in topics.items() for index in range(count)
    ]
    found: dict[str, list[list[Any]]] = {f"{place.topic}-{place.partition}": [] for place in places}
    ended: set[str] = set()
    consumer = make_consumer(bootstrap, isolation_level=level)
    consumer.assign(places)
    while len(ended) < len(places):
        message = consumer.poll(DEADLINE_S)
        assert message is not None, f"no end of {found.keys() - ended} within {DEADLINE_S} s"
        place = f"{message.topic()}-{message.partition()}"
        if message.error() is None:
            found[place].append(_record(message))
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ended.add(place)
        else:
            assert message.error().retriable(), message.error()
    consumer.close()
    return found


def _cluster(talk: Talk, topics: dict[str, int]) -> dict[str, Any]:
    named = tuple({"topic_id": None, "name": topic} for topic in sorted(topics))
    told = talk.told(
        "metadata", 12, topics=named, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    log = {"topic_name": "__cluster_metadata", "partitions": ({"partition_index": 0},)}
    (quorum,) = talk.told("describe_quorum", 2, topics=(log,))["topics"][0]["partitions"]
    versions = talk.told("api_versions", 3, client_software_name="test", client_software_version="1")
    return {
        "id": told["cluster_id"],
        "topics": {one["name"]: [one["topic_id"], len(one["partitions"])] for one in told["topics"]},
        "voters": [[one["replica_id"], one["replica_directory_id"]] for one in quorum["current_voters"]],
        "features": {one["name"]: one["max_version_level"] for one in versions["finalized_features"]},
    }


def _configs(talk: Talk, resources: Iterable[tuple[int, str]]) -> dict[str, dict[str, str | None]]:
    """What was set, not what is in force."""
    asked = tuple(
        {"resource_type": kind, "resource_name": name, "configuration_keys": None} for kind, name in resources
    )
    told = talk.told("describe_configs", 4, resources=asked, include_synonyms=False, include_documentation=False)
    return {
        f"{one['resource_type']} {one['resource_name']}": {
            each["name"]: each["value"]
            for each in one["configs"]
            if each["config_source"] in (TOPICS_OWN, BROKERS_OWN, ALL_BROKERS)
        }
        for one in told["results"]
    }


def _groups(talk: Talk, groups: Groups) -> dict[str, Any]:
    asked = {"include_authorized_operations": False}
    named = tuple({"group_id": group, "topics": None} for group in groups.share)
    return {
        "classic": talk.told("describe_groups", 5, groups=groups.classic, **asked)["groups"],
        "consumer": talk.told("consumer_group_describe", 1, group_ids=groups.consumer, **asked)["groups"],
        "share": talk.told("share_group_describe", 1, group_ids=groups.share, **asked)["groups"],
        "shares": talk.told("describe_share_group_offsets", 0, groups=named)["groups"],
    }


def _producers(talk: Talk, topics: dict[str, int]) -> list[Any]:
    named = tuple({"name": topic, "partition_indexes": tuple(range(count))} for topic, count in topics.items())
    found = talk.told("describe_producers", 0, topics=named)["topics"]
    return sorted(found, key=lambda one: str(one["name"]))
