"""A fleet of the version that landed before this one is rolled to this one, broker by broker, while clients go on.

Nothing that was acknowledged may be missing, doubled or out of order, groups go on, and commands for the metadata work
whichever version the node that takes them has, and the controller.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from kio.schema.errors import ErrorCode as Code
from ottla.cli.control import ControlClient
from support.copier_process import CopierProcess, Pipeline
from support.copy_history import Copied, copy_anomalies
from support.fleet import FleetOf
from support.frames import Connection
from support.group_member import Member
from support.history import Read, anomalies, polled_anomalies
from support.kept_data import begin_session
from support.librdkafka import make_consumer, make_topic, read, watermarks
from support.observed import BROKER, TOPIC, Talk
from support.ottla_broker import OttlaBroker
from support.polling import PollingLibrdkafka
from support.share_member import NO_OPERATIONS
from support.sharing import QUICK_SHARING, Sharers, give_settings
from support.steady import SteadyLibrdkafka
from support.waiting import eventually

PARTITIONS = 4
TOTALS = PARTITIONS  # the partition behind them
SOURCE, TARGET = "source", "target"
RECORDS_PER_SECOND = 200
PROGRESS_RECORDS, PROGRESS_TRANSACTIONS, PROGRESS_S = 100, 3, 60.0
PROTOCOLS = ("classic", "consumer")
RETENTION = "retention.ms"
QUICK = {
    **{name: value for name, value in QUICK_SHARING.items() if "lock" not in name},
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "group.consumer.min.session.timeout.ms": "10000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
}
LOG = {"topic_name": "__cluster_metadata", "partitions": ({"partition_index": 0},)}


class Load:
    """A producer, a reader, a group of each protocol, and a copier that must be exact."""

    def __init__(self, fleet: FleetOf) -> None:
        self.fleet = fleet
        for topic, count in ((SOURCE, PARTITIONS), (TARGET, PARTITIONS + 1)):
            make_topic(fleet.bootstrap, topic, partitions=count, replicas=3, min_insync_replicas="2")
        self.producer = SteadyLibrdkafka(fleet.bootstrap, SOURCE, partitions=PARTITIONS, rate=RECORDS_PER_SECOND)
        self.reader = PollingLibrdkafka(fleet.bootstrap, SOURCE, partitions=PARTITIONS)
        commits = {"enable_auto_commit": True, "auto_commit_interval_ms": 200}
        self.members = {
            protocol: Member(fleet.bootstrap, protocol, [SOURCE], group_protocol=protocol, **commits)
            for protocol in PROTOCOLS
        }
        self.sharers = share(fleet)
        # Not librdkafka's copier, which waits 20 s for a group's coordinator that is gone (see support.copier).
        pipeline = Pipeline("java", fleet.bootstrap, SOURCE, TARGET, TOTALS, "consumer")
        self.copier = CopierProcess(pipeline, fleet.folder, 0)
        self.copier.start(transaction_timeout_ms=15_000)

    def progress(self) -> None:
        """Of everybody."""
        read_before = {name: len(member.records) for name, member in self.members.items()}
        committed, shared = self.copier.committed, len(self.sharers.acknowledged())
        self.producer.wait_for_progress(PROGRESS_RECORDS, timeout_s=PROGRESS_S)

        def grown() -> dict[str, int]:
            self.copier.tend()
            return {
                "copier": self.copier.committed - committed - PROGRESS_TRANSACTIONS,
                "sharers": len(self.sharers.acknowledged()) - shared - PROGRESS_RECORDS,
                **{one: len(self.members[one].records) - read_before[one] - PROGRESS_RECORDS for one in self.members},
            }

        eventually(grown, lambda seen: min(seen.values()) >= 0, timeout_s=PROGRESS_S)

    def judge(self) -> None:
        sends = self.producer.finish()
        final = [one for index in range(PARTITIONS) for one in records(self.fleet, SOURCE, index)]
        ends = {index: watermarks(self.fleet.bootstrap, SOURCE, index)[1] for index in range(PARTITIONS)}
        self.reader.wait_for(ends, timeout_s=PROGRESS_S)
        found = [*anomalies(sends, final), *polled_anomalies(final, {"reader": list(self.reader.reads)})]
        assert not found, f"{Counter(a.kind for a in found)}; first: {found[:5]}"
        eventually(lambda: [self.offsets(one) for one in (*PROTOCOLS, f"of-{TARGET}")], lambda seen: seen == [ends] * 3)
        values = {one.value.decode() for one in final}
        eventually(lambda: values - set(self.sharers.acknowledged()), lambda left: not left, timeout_s=PROGRESS_S)
        self.copier.finish()
        source = {index: [one.value for one in records(self.fleet, SOURCE, index)] for index in range(PARTITIONS)}
        copies = [one for index in range(PARTITIONS + 1) for one in records(self.fleet, TARGET, index)]
        torn = copy_anomalies(Copied(source, copies, self.copier.outcomes, self.offsets(f"of-{TARGET}")))
        assert not torn, f"{Counter(a.kind for a in torn)}; first: {torn[:5]}"
        print(f"{len(sends)} records, {self.copier.committed} transactions; errors {self.copier.errors[-3:]}")

    def offsets(self, group: str) -> dict[int, int]:
        consumer = make_consumer(self.fleet.bootstrap, group_id=group, isolation_level="read_committed")
        try:
            asked = consumer.committed([TopicPartition(SOURCE, i) for i in range(PARTITIONS)], timeout=PROGRESS_S)
        finally:
            consumer.close()
        return {each.partition: max(0, each.offset) for each in asked}

    def close(self) -> None:
        self.sharers.kill()
        self.copier.close()
        self.reader.close()
        for member in self.members.values():
            member.close()


@pytest.fixture
def fleet(make_fleet: Callable[..., FleetOf], previous_code: Path) -> FleetOf:
    made = make_fleet(settings=QUICK)
    for index in made.ids:
        member(made, index).use_code(previous_code)
    made.start()
    return made


@pytest.fixture
def load(fleet: FleetOf) -> Iterator[Load]:
    made = Load(fleet)
    yield made
    made.close()


def test_clients_do_not_notice_the_roll(fleet: FleetOf, load: Load, previous_code: Path) -> None:
    load.progress()
    administer(fleet, "all-old")
    controller = leader(fleet)
    first, last = (index for index in fleet.ids if index != controller)
    roll(fleet, first, None)
    load.progress()
    assert leader(fleet) != first, "nothing but the old may lead here"
    administer(fleet, "new-beside-old-controller")
    roll(fleet, controller, None)
    if leader(fleet) == last:
        roll(fleet, last, previous_code)
    load.progress()
    assert leader(fleet) != last, "nothing but the new may lead here"
    administer(fleet, "old-beside-new-controller")
    roll(fleet, last, None)
    load.progress()
    administer(fleet, "all-new")
    check_addresses(fleet)
    load.judge()


def test_a_fleet_can_be_rolled_back(make_fleet: Callable[..., FleetOf], previous_code: Path) -> None:
    """The version before reads what this one wrote, as long as nobody uses what it does not know."""
    fleet = make_fleet(settings=QUICK)
    fleet.start()
    load = Load(fleet)
    try:
        load.progress()
        for index in fleet.ids:
            administer(fleet, f"before-{index}")
            roll(fleet, index, previous_code)
            load.progress()
        load.judge()
    finally:
        load.close()


def share(fleet: FleetOf) -> Sharers:
    update = {"feature": "share.version", "max_version_level": 1, "upgrade_type": 1}
    with Connection(fleet.members[0].port) as connection:
        ask(Talk(connection), "update_features", 1, "results", feature_updates=(update,), validate_only=False)
    give_settings(fleet.bootstrap, "sharing", auto_offset_reset="earliest")
    return Sharers(fleet.folder, fleet.bootstrap, group="sharing", topic=SOURCE, implicit=True)


def records(fleet: FleetOf, topic: str, index: int) -> list[Read]:
    found = read(fleet.bootstrap, topic, index, isolation_level="read_committed")
    return [Read(index, one.offset(), one.value() or b"") for one in found]


def member(fleet: FleetOf, index: int) -> OttlaBroker:
    found = fleet.members[index]
    assert isinstance(found, OttlaBroker)
    return found


def roll(fleet: FleetOf, index: int, code: Path | None) -> None:
    """As an operator does: stops it once all are in sync, and starts it with that code, or with ours."""
    fleet.wait_in_sync()
    assert fleet.members[index].stop() == 0
    member(fleet, index).use_code(code)
    fleet.members[index].start()
    fleet.wait_in_sync()


def leader(fleet: FleetOf) -> int:
    """Of the quorum."""

    def told() -> int:
        with Connection(fleet.members[0].port) as connection:
            answer = Talk(connection).told("describe_quorum", 2, topics=(LOG,))
        (partition,) = answer["topics"][0]["partitions"]
        return int(partition["leader_id"]) if partition["error_code"] == Code.none else -1

    return eventually(told, lambda found: found >= 0)


def check_addresses(fleet: FleetOf) -> None:
    """Each node is described by the address where it takes operators' questions, also if an old controller registered
    it."""
    expected = [f"127.0.0.1:{broker.settings['ottla.grpc.port']}" for broker in fleet.members]
    client = ControlClient(expected)
    try:
        assert [node.address for node in client.describe().nodes] == expected
    finally:
        client.close()


def administer(fleet: FleetOf, when: str) -> None:
    """Commands through each node; each node then says what came of them."""
    for index in fleet.ids:
        with Connection(fleet.members[index].port) as connection:
            command(Talk(connection), f"{when}-{index}")

    def all_done(seen: list[tuple[int, str]]) -> bool:
        return set(seen) == {(PARTITIONS, "12345")}

    topics = [f"{when}-{index}" for index in fleet.ids]
    for broker in fleet.members:
        with Connection(broker.port) as connection:
            eventually(partial(described, Talk(connection), topics), all_done)


def command(talk: Talk, topic: str) -> None:
    """What controllers are asked for: topics come, change and go; configs, quotas, moves, ids for producers."""
    gone = f"{topic}-gone"
    made = [{"name": name, "num_partitions": 2, "replication_factor": 3} for name in (topic, gone)]
    lists = {"assignments": (), "configs": ()}
    settings = {
        (TOPIC, topic): {"name": RETENTION, "config_operation": 0, "value": "12345"},
        (BROKER, ""): {"name": "message.max.bytes", "config_operation": 0, "value": "2000000"},
    }
    resources = [
        {"resource_type": kind, "resource_name": name, "configs": (one,)} for (kind, name), one in settings.items()
    ]
    quota = {
        "entity": ({"entity_type": "client-id", "entity_name": topic},),
        "ops": ({"key": "producer_byte_rate", "value": 1e9, "remove": False},),
    }
    moved = {"name": topic, "partitions": ({"partition_index": 0, "replicas": (2, 0, 1)},)}
    more = {"name": topic, "count": PARTITIONS, "assignments": None}
    ask(talk, "create_topics", 7, "topics", topics=[{**one, **lists} for one in made], validate_only=False)
    ask(talk, "incremental_alter_configs", 1, "responses", resources=resources, validate_only=False)
    ask(talk, "create_partitions", 3, "results", topics=(more,), validate_only=False)
    ask(talk, "alter_partition_reassignments", 0, "responses", topics=(moved,))
    ask(talk, "alter_client_quotas", 1, "entries", entries=(quota,), validate_only=False)
    ask(talk, "delete_topics", 6, "responses", topics=({"name": gone, "topic_id": None},))
    begin_session(talk, None)


def ask(talk: Talk, api: str, version: int, results: str, **values: Any) -> None:
    told = talk.told(api, version, timeout=timedelta(seconds=20), **values)
    codes = [told.get("error_code", 0), *(one.get("error_code", 0) for one in told[results])]
    assert not any(codes), f"{api}: {told}"


def described(talk: Talk, topics: Sequence[str]) -> list[tuple[int, str]]:
    """Of each: how many of its partitions have a leader, and its retention."""
    configs = tuple(
        {"resource_type": TOPIC, "resource_name": one, "configuration_keys": (RETENTION,)} for one in topics
    )
    told = talk.told("describe_configs", 4, resources=configs, include_synonyms=False, include_documentation=False)
    retentions = ["".join(config["value"] for config in one["configs"]) for one in told["results"]]
    seen = talk.told("metadata", 12, topics=tuple({"topic_id": None, "name": one} for one in topics), **NO_OPERATIONS)
    led = [sum(one["leader_id"] >= 0 for one in topic["partitions"]) for topic in seen["topics"]]
    return list(zip(led, retentions, strict=True))
