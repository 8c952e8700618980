"""Share groups with Kafka's own Java share consumers and tools, unmodified."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from support.java import java_program, java_tool
from support.librdkafka import DEADLINE_S, Sent, make_topic, send
from support.process import BrokerProcess
from support.sharing import ONE_BROKER, Sharers, give_settings, share_tool, turn_on
from support.waiting import eventually

BROKER_SETTINGS = ONE_BROKER
TOOLS = "org.apache.kafka.tools"
DELIVERIES_MAX = 5


@pytest.fixture(scope="module")
def sharing(broker: BrokerProcess) -> BrokerProcess:
    """A broker on which share groups are turned on."""
    features = (f"{TOOLS}.FeatureCommand", "--bootstrap-server", broker.bootstrap, "describe")
    assert re.search(r"share\.version\s.*SupportedMaxVersion: 1\s.*FinalizedVersionLevel: 0", java_tool(*features).text)
    assert "share.version was upgraded to 1." in turn_on(broker.bootstrap).text
    return broker


@pytest.fixture
def shared(sharing: BrokerProcess, name: str) -> str:
    """A topic of one partition, and a group of the same name that begins with the first record."""
    make_topic(sharing.bootstrap, name)
    give_settings(sharing.bootstrap, name, auto_offset_reset="earliest", record_lock_duration_ms="1000")
    return name


def fill(bootstrap: str, topic: str, values: list[str]) -> None:
    send(bootstrap, topic, [Sent(value.encode()) for value in values])


def test_two_members_share_one_partition(sharing: BrokerProcess, shared: str, tmp_path: Path) -> None:
    bootstrap, values = sharing.bootstrap, list[str]()
    with Sharers(tmp_path, bootstrap, group=shared, topic=shared, members=2, implicit=True, records_max=10) as sharers:

        def shared_by() -> set[int]:
            return {event["member"] for event in sharers.events("got")}

        def is_done(seen: list[str]) -> bool:
            return len(seen) >= len(values)

        while len(shared_by()) < 2:
            more = [f"accept-{len(values) + number}" for number in range(20)]
            values.extend(more)
            fill(bootstrap, shared, more)
            eventually(sharers.acknowledged, is_done)
        assert Counter(sharers.acknowledged()) == Counter(values), "every record once"
        assert {count for _, count in sharers.got()} == {1}
        described = share_tool(bootstrap, "--describe", "--group", shared, "--members", "--verbose").lines
        assert len([line for line in described if line.startswith(shared)]) == 2, described
        state = share_tool(bootstrap, "--describe", "--group", shared, "--state").lines
        assert state[-1].split()[-2:] == ["Stable", "2"]
        refused = share_tool(bootstrap, "--delete", "--group", shared, code=None)
        assert "is not EMPTY" in refused.text or "not empty" in refused.text.lower()


def test_what_becomes_of_records_is_said_one_by_one(sharing: BrokerProcess, shared: str, tmp_path: Path) -> None:
    values = ["accept-0", "release-1", "reject-2", "always-3", "accept-4"]
    fill(sharing.bootstrap, shared, values)
    with Sharers(tmp_path, sharing.bootstrap, group=shared, topic=shared) as sharers:
        wanted = {"accept-0": 1, "release-1": 2, "reject-2": 1, "always-3": DELIVERIES_MAX, "accept-4": 1}
        eventually(sharers.deliveries, lambda seen: seen == wanted)
        counts = [count for value, count in sharers.got() if value == "always-3"]
        assert counts == [1, 2, 3, 4, 5]
        assert [count for value, count in sharers.got() if value == "release-1"] == [1, 2]
        fill(sharing.bootstrap, shared, ["accept-5"])
        eventually(sharers.deliveries, lambda seen: seen["accept-5"] == 1)
        assert sharers.deliveries() == {**wanted, "accept-5": 1}, "what was given up does not come again"
        assert not sharers.failures()


def test_who_holds_a_record_too_long_loses_it(sharing: BrokerProcess, shared: str, tmp_path: Path) -> None:
    fill(sharing.bootstrap, shared, ["hold-0"])
    with Sharers(tmp_path, sharing.bootstrap, group=shared, topic=shared) as holder:
        eventually(holder.got, lambda seen: seen == [("hold-0", 1)])
        with Sharers(tmp_path, sharing.bootstrap, group=shared, topic=shared) as taker:
            eventually(taker.got, lambda seen: seen == [("hold-0", 2)])


def test_acknowledgements_outlive_the_broker(
    make_broker: Callable[..., BrokerProcess], name: str, tmp_path: Path
) -> None:
    broker = make_broker(**BROKER_SETTINGS)
    broker.start()
    make_topic(broker.bootstrap, name)
    turn_on(broker.bootstrap)
    give_settings(broker.bootstrap, name, auto_offset_reset="earliest", record_lock_duration_ms="1000")
    done: Counter[str] = Counter()
    with Sharers(tmp_path, broker.bootstrap, group=name, topic=name, records_max=10) as sharers:
        for round_number, end in enumerate((broker.stop, broker.kill, None)):
            first = [f"reject-{round_number}", f"release-{round_number}"]
            fill(broker.bootstrap, name, first + [f"accept-{round_number}-{number}" for number in range(20)])
            wanted = 23 * (round_number + 1)  # one of them comes twice
            eventually(lambda count=wanted: len(sharers.acknowledged()) >= count, bool, timeout_s=60)  # type: ignore[misc]
            if end is not None:
                end()
                broker.start()
        done = sharers.deliveries()
        assert {value: count for value, count in done.items() if count > 1} == {f"release-{at}": 2 for at in range(3)}
        assert not sharers.failures()


def test_new_partitions_are_shared_and_topics_may_go(sharing: BrokerProcess, shared: str, tmp_path: Path) -> None:
    bootstrap = sharing.bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap})
    fill(bootstrap, shared, ["accept-0"])
    with Sharers(tmp_path, bootstrap, group=shared, topic=shared) as sharers:
        eventually(sharers.acknowledged, lambda seen: seen == ["accept-0"])
        admin.create_partitions([NewPartitions(shared, 2)])[shared].result(DEADLINE_S)
        send(bootstrap, shared, [Sent(b"accept-1", partition=1)])
        eventually(sharers.acknowledged, lambda seen: seen == ["accept-0", "accept-1"])
        sharers.stop()
    admin.delete_topics([shared])[shared].result(DEADLINE_S)
    described = share_tool(bootstrap, "--describe", "--group", shared).lines
    assert not [line for line in described if line.startswith(shared)], "nothing is left of its offsets"


def test_tools(sharing: BrokerProcess, shared: str) -> None:
    bootstrap = sharing.bootstrap
    fill(bootstrap, shared, [str(number) for number in range(5)])
    console = (f"{TOOLS}.consumer.ConsoleShareConsumer", "--bootstrap-server", bootstrap)
    where = ("--topic", shared, "--group", shared)
    shown = java_tool(*console, *where, "--max-messages", "3", "--timeout-ms", "30000")
    assert sorted(map(int, shown.lines)) == list(range(3))

    def offsets() -> list[list[str]]:
        lines = share_tool(bootstrap, "--describe", "--group", shared).lines
        return [line.split() for line in lines if line.startswith(shared)]

    eventually(offsets, lambda seen: seen == [[shared, shared, "0", "3"]])
    listed = share_tool(bootstrap, "--list", "--state").lines
    assert [shared, "Empty"] in [line.split() for line in listed]
    groups = java_tool(f"{TOOLS}.GroupsCommand", "--bootstrap-server", bootstrap, "--list", "--share").lines
    assert [shared, "Share", "share"] in [line.split() for line in groups]
    deleted = share_tool(bootstrap, "--delete-offsets", "--group", shared, "--topic", shared).lines
    assert [shared, "Successful"] in [line.split() for line in deleted]
    assert offsets() == []
    again = java_tool(*console, *where, "--max-messages", "5", "--timeout-ms", "30000")
    assert sorted(map(int, again.lines)) == list(range(5)), "as if the group had never been"
    assert "was successful" in share_tool(bootstrap, "--delete", "--group", shared).text
    assert shared not in share_tool(bootstrap, "--list").lines


def test_a_group_begins_elsewhere(sharing: BrokerProcess, shared: str, tmp_path: Path) -> None:
    if sharing.name == "kafka":
        pytest.skip("Kafka 4.1.1 answers that it is done, and does nothing")
    bootstrap = sharing.bootstrap
    fill(bootstrap, shared, [f"accept-{number}" for number in range(5)])
    with Sharers(tmp_path, bootstrap, group=shared, topic=shared) as sharers:
        eventually(sharers.acknowledged, lambda seen: len(seen) == 5)
        sharers.stop()
    assert java_program("ShareOffsets", bootstrap, shared, shared, "0", "3").lines == ["0 3"]
    with Sharers(tmp_path, bootstrap, group=shared, topic=shared) as sharers:
        eventually(sharers.got, lambda seen: seen == [("accept-3", 1), ("accept-4", 1)])


def test_kafka_reads_the_records_of_a_group(sharing: BrokerProcess, shared: str, tmp_path: Path) -> None:
    """All kinds of records, and Kafka's DumpLogSegments understands every one of them."""
    fill(sharing.bootstrap, shared, ["accept-0"])
    with Sharers(tmp_path, sharing.bootstrap, group=shared, topic=shared) as sharers:
        eventually(sharers.acknowledged, lambda seen: seen == ["accept-0"])
    log = sharing.data_dir / "__consumer_offsets-0" / f"{0:020}.log"
    dumped = java_tool("kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", str(log)).text
    for kind in range(10, 16):
        assert re.search(rf'"type":"{kind}","data":{{"groupId":"{shared}"[^|]* payload: {{"version":"0"', dumped), kind
    assert not re.search("exception|isvalid: false", dumped, re.IGNORECASE)


def test_a_group_has_settings_of_its_own(sharing: BrokerProcess, name: str) -> None:
    group = ("--bootstrap-server", sharing.bootstrap, "--entity-type", "groups", "--entity-name", name)
    tool = "kafka.admin.ConfigCommand"
    wanted = "share.auto.offset.reset=by_duration:PT1H,share.isolation.level=read_committed"
    java_tool(tool, *group, "--alter", "--add-config", wanted)
    own, *others = [line for line in java_tool(tool, *group, "--describe", "--all").lines if line.startswith("share.")]
    assert own == (
        "share.auto.offset.reset=by_duration:PT1H sensitive=false "
        "synonyms={DYNAMIC_GROUP_CONFIG:share.auto.offset.reset=by_duration:PT1H}"
    )
    beat_ms = BROKER_SETTINGS["group.share.heartbeat.interval.ms"]
    synonym = f"synonyms={{DEFAULT_CONFIG:share.heartbeat.interval.ms={beat_ms}}}"
    assert f"share.heartbeat.interval.ms={beat_ms} sensitive=false {synonym}" in others
    assert [line.partition("=")[0] for line in others] == [
        "share.heartbeat.interval.ms",
        "share.isolation.level",
        "share.record.lock.duration.ms",
        "share.session.timeout.ms",
    ]
    for wrong, why in {
        "share.auto.offset.reset=by_duration:-PT1H": "of the format 'by_duration:<PnDTnHnMn.nS>'.",
        "share.session.timeout.ms=100000": "must be less than or equal to group.share.max.session.timeout.ms",
    }.items():
        assert why in java_tool(tool, *group, "--alter", "--add-config", wrong, code=1).text
