"""Makes the data directories that test_data_directory.py starts a broker on, with the code that landed last.

    PYTHONPATH=broker:tests:. python tests/versions/make_data_dir.py

Two of them, each with what clients saw of it: `stopped`, of a broker that ended cleanly, written long ago by its clock,
so that what can expire has; and `killed`, of one that was killed with -9, written far in the future, so that nothing
expires however late the test runs.
"""

import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from golden.group_versions import wait_for_coordinator
from kio.schema.errors import ErrorCode as Code
from support import share_member
from support.frames import Connection
from support.group_member import Member
from support.kept_data import GROUPS, OPEN, PENDING, SETTINGS, TRANSACTIONAL_IDS, begin_session
from support.librdkafka import DEADLINE_S, Sent, make_consumer, make_topic, read, send
from support.observed import BROKER, TOPIC, Talk, observed
from support.ottla_broker import OttlaBroker
from support.process import BrokerProcess
from support.sharing import give_settings, turn_on
from support.transactions import producer
from support.versions import FOLDER, PREVIOUS, commit_of, unpack
from support.waiting import eventually

YEAR_S = 365 * 24 * 3600
COMPACTING = {"log.initial.task.delay.ms": "0", "log.cleaner.backoff.ms": "200", "log.segment.delete.delay.ms": "0"}
CODECS = ("gzip", "snappy", "lz4", "zstd")
LARGE = 150_000  # bytes of a record that compresses well: a segment has at least a MiB
ACCEPT, RELEASE, REJECT = 1, 2, 3
Pair = tuple[bytes | None, bytes | None]


@dataclass(frozen=True)
class Variant:
    name: str
    clock_shift_s: int
    killed: bool


VARIANTS = (Variant("stopped", -10 * YEAR_S, killed=False), Variant("killed", 50 * YEAR_S, killed=True))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        code = unpack(PREVIOUS, Path(scratch) / "code")
        for variant in VARIANTS:
            make(variant, Path(scratch) / variant.name, code)


def make(variant: Variant, folder: Path, code: Path) -> None:
    folder.mkdir()
    broker = OttlaBroker(folder, settings={**SETTINGS, **COMPACTING})
    broker.use_code(code, clock_shift_s=variant.clock_shift_s)
    broker.start()
    first_ms = round((time.time() + variant.clock_shift_s) * 1000)
    turn_on(broker.bootstrap)
    wait_for_coordinator(broker.port)
    fill(broker.bootstrap, first_ms)
    compact(broker.bootstrap, first_ms)
    transactions(broker.bootstrap, first_ms)
    administer(broker.bootstrap)
    share(broker, first_ms)
    with Connection(broker.port) as connection:
        facts = {"first_ms": first_ms, "sessions": sessions(Talk(connection), broker.bootstrap, first_ms)}
    facts["written by"] = commit_of(PREVIOUS)
    members = join(broker.bootstrap)
    facts["observed"] = observed(broker, GROUPS, TRANSACTIONAL_IDS)
    (broker.kill if variant.killed else broker.stop)()
    keep(variant, broker, facts)
    for member in members:
        member.close()


def keep(variant: Variant, broker: BrokerProcess, facts: dict[str, Any]) -> None:
    (FOLDER / f"{variant.name}.json").write_text(json.dumps(facts, separators=(",", ":")) + "\n")
    with tarfile.open(FOLDER / f"{variant.name}.tar.xz", "w:xz") as packed:
        packed.add(broker.data_dir, "data")
    print(variant.name, (FOLDER / f"{variant.name}.tar.xz").stat().st_size, "bytes")


def fill(bootstrap: str, first_ms: int) -> None:
    """Several segments, every codec, headers, a key without a value; and a topic that is deleted."""
    small = {"segment_bytes": 1 << 20, "segment_index_bytes": 4096}
    make_topic(bootstrap, "plain", partitions=2, **small)
    make_topic(bootstrap, "codecs", partitions=len(CODECS))
    for number in range(20):
        produce(bootstrap, "plain", [(b"k%d" % number, large(number))], first_ms + number)
    produce(bootstrap, "plain", [(b"key", None), (None, b"value")], first_ms, partition=1)
    for index, codec in enumerate(CODECS):
        records: list[Pair] = [(b"k%d" % number, b"%s %d" % (codec.encode(), number)) for number in range(50)]
        produce(bootstrap, "codecs", records, first_ms, partition=index, codec=codec)
    make_topic(bootstrap, "deleted")
    produce(bootstrap, "deleted", [(None, b"gone")], first_ms)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics(["deleted"])["deleted"].result(DEADLINE_S)


def large(number: int) -> bytes:
    return b"%d " % number * (LARGE // 3)


def produce(
    bootstrap: str, topic: str, records: Sequence[Pair], time_ms: int, *, partition: int = 0, codec: str = "none"
) -> None:
    headers = [("header", b"of it"), ("empty", None)]
    wanted = [Sent(value, key, partition, headers, time_ms) for key, value in records]
    assert not send(bootstrap, topic, wanted, compression_type=codec).errors


def compact(bootstrap: str, first_ms: int) -> None:
    """Until of all segments but the last one record per key is left, one of them without a value."""
    forever = str(100 * YEAR_S * 1000)
    rules = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "delete_retention_ms": forever}
    make_topic(bootstrap, "compacted", segment_bytes=1 << 20, segment_index_bytes=4096, **rules)
    for number in range(30):
        value = None if number == 19 else large(number)
        produce(bootstrap, "compacted", [(b"k%d" % (number % 4), value)], first_ms + number)
    eventually(lambda: len(read(bootstrap, "compacted")), lambda count: count < 15)


def transactions(bootstrap: str, first_ms: int) -> None:
    """Committed, aborted, and committed together with offsets."""
    make_topic(bootstrap, "transactions", partitions=2)
    made = producer(bootstrap, "committing")
    for number, commits in enumerate((True, False, True, False)):
        made.begin_transaction()
        for index in (0, 1):
            made.produce("transactions", b"%d" % number, b"%d" % commits, index, timestamp=first_ms)
        assert made.flush(DEADLINE_S) == 0  # an abort would take back what is not sent yet
        if commits:
            consumer = make_consumer(bootstrap, group_id="classic")
            offset = TopicPartition("codecs", 0, 10 + number)
            made.send_offsets_to_transaction([offset], consumer.consumer_group_metadata(), DEADLINE_S)
            consumer.close()
        (made.commit_transaction if commits else made.abort_transaction)(DEADLINE_S)


def sessions(talk: Talk, bootstrap: str, first_ms: int) -> dict[str, dict[str, int]]:
    """An idempotent producer that wrote two batches of two, and a transaction that is left open."""
    for topic in ("idempotent", "open"):
        make_topic(bootstrap, topic)
    steady, left = begin_session(talk, None), begin_session(talk, OPEN)
    for sequence in (0, 2):
        values = [f"{sequence}", f"{sequence + 1}"]
        assert steady.write(talk, "idempotent", values, sequence=sequence, time_ms=first_ms)["error_code"] == 0
    left.add(talk, "open", PENDING)
    told = left.write(talk, "open", ["open 0", "open 1"], sequence=0, time_ms=first_ms, transactional=True)
    assert told["error_code"] == 0, told
    left.commit_offset(talk, "codecs", PENDING, 33)
    return {"steady": asdict(steady), "open": asdict(left)}


def administer(bootstrap: str) -> None:
    """Configs of topics, of a broker and of all, and quotas."""
    changes = {
        (TOPIC, "plain"): {"max.message.bytes": "2000000"},
        (TOPIC, "codecs"): {"min.insync.replicas": "1", "retention.ms": "-1"},
        (BROKER, "1"): {"log.cleaner.threads": "2"},
        (BROKER, ""): {"message.max.bytes": "3000000"},
    }
    resources = tuple(
        {"resource_type": kind, "resource_name": name, "configs": tuple(map(setting, values.items()))}
        for (kind, name), values in changes.items()
    )
    limit = {"key": "producer_byte_rate", "value": 1e6, "remove": False}
    entities = ({"entity_type": "user", "entity_name": "ann"}, {"entity_type": "client-id", "entity_name": None})
    entries = tuple({"entity": (entity,), "ops": (limit,)} for entity in entities)
    with Connection(int(bootstrap.rpartition(":")[2])) as connection:
        talk = Talk(connection)
        told = [
            *talk.told("incremental_alter_configs", 1, resources=resources, validate_only=False)["responses"],
            *talk.told("alter_client_quotas", 1, entries=entries, validate_only=False)["entries"],
        ]
    assert not any(one["error_code"] for one in told), told


def setting(of: tuple[str, str]) -> dict[str, Any]:
    return {"name": of[0], "config_operation": 0, "value": of[1]}


def share(broker: BrokerProcess, first_ms: int) -> None:
    """The first record is given back, as is the last by leaving; those between are accepted or rejected."""
    make_topic(broker.bootstrap, "shared")
    give_settings(broker.bootstrap, "sharing", auto_offset_reset="earliest")
    produce(broker.bootstrap, "shared", [(None, b"accept %d" % number) for number in range(6)], first_ms)
    member = share_member.Member(broker, "sharing", "shared")
    assert member.counts() == dict.fromkeys(range(6), 1)
    verdicts = ((0, 0, (RELEASE,)), (1, 2, (ACCEPT,)), (3, 3, (REJECT,)), (4, 4, (ACCEPT,)))
    assert member.outcome(*verdicts) == Code.none
    member.leave()


def join(bootstrap: str) -> list[Member]:
    """A group of each protocol whose member left, and one that has a member."""
    members = []
    for protocol, group in (("classic", "classic"), ("consumer", "modern")):
        gone = Member(bootstrap, group, ["codecs"], group_protocol=protocol)
        gone.until_owns(len(CODECS))
        gone.commit([TopicPartition("codecs", index, 20 + index, metadata=f"of {group}") for index in (1, 2)])
        gone.close()
        members.append(Member(bootstrap, f"{group}-held", ["codecs"], group_protocol=protocol))
    for member in members:
        member.until_owns(len(CODECS))
    return members


if __name__ == "__main__":
    sys.exit(main())
