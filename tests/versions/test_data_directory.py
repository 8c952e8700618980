"""This broker starts on a data directory that the one before it wrote, or the one before that; clients find everything
there, and go on.

`stopped` was written long ago and stopped cleanly, `killed` far in the future and killed with -9: see make_data_dir.py.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from kio.schema.errors import ErrorCode as Code
from support.frames import Connection
from support.group_member import Member
from support.kept_data import GROUPS, OPEN, PENDING, SETTINGS, TRANSACTIONAL_IDS, Session
from support.librdkafka import Sent, make_topic, read, send
from support.observed import Talk, observed, offsets
from support.ottla_broker import OttlaBroker
from support.sharing import Sharers
from support.transactions import producer, transact
from support.versions import FOLDER, unpack
from support.waiting import eventually

VARIANTS = ("stopped", "killed", "edb5fe4/stopped", "edb5fe4/killed")
PARTITIONS = 4
SOON = (Code.concurrent_transactions, Code.coordinator_load_in_progress, Code.not_coordinator)


class Kept:
    """A broker on an unpacked directory; what clients saw of it before, and see now."""

    def __init__(self, variant: str, folder: Path) -> None:
        unpack(variant, folder)
        self.facts: dict[str, Any] = json.loads((FOLDER / f"{variant}.json").read_text())
        self.broker = OttlaBroker(folder, settings=SETTINGS)
        self.expired = variant.endswith("stopped")
        self.folder = folder

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def observe(self) -> dict[str, Any]:
        """Once the coordinators have read their logs."""

        def all_loaded(seen: dict[str, Any]) -> bool:
            kinds = ("classic", "consumer", "share", "shares")
            codes = [group["error_code"] for kind in kinds for group in seen["groups"][kind]]
            codes += [one["error_code"] for one in seen["transactions"]["transaction_states"]]
            return not any(code in SOON for code in codes)

        return eventually(lambda: observed(self.broker, GROUPS, TRANSACTIONAL_IDS), all_loaded)

    def lasting(self) -> dict[str, Any]:
        """The same without a group whose only offsets were taken back, since of such a group nothing is written, and
        without producers that are forgotten sooner or later."""
        seen = self.observe()
        if self.expired:
            del seen["producers"]
        seen["groups"]["classic"] = [one for one in seen["groups"]["classic"] if one["group_id"] != PENDING]
        return seen

    def session(self, name: str) -> Session:
        return Session(**self.facts["sessions"][name])

    def records(self, topic: str, level: str = "read_committed") -> list[str]:
        found = read(self.bootstrap, topic, isolation_level=level)
        return [(message.value() or b"").decode() for message in found]


@pytest.fixture(scope="module", params=VARIANTS)
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    made = Kept(request.param, tmp_path_factory.mktemp("kept"))
    made.broker.start()
    yield made
    made.broker.close()


@pytest.fixture
def talk(kept: Kept) -> Iterator[Talk]:
    with Connection(kept.broker.port) as connection:
        yield Talk(connection)


def test_everything_is_there(kept: Kept) -> None:
    """But for what has timed out, which is the next tests' matter."""
    before, now = kept.facts["observed"], kept.observe()
    for told in (before, now):
        del told["transactions"]["transaction_states"][TRANSACTIONAL_IDS.index(OPEN)]
        for level in told["records"].values():
            del level["open-0"]
        if kept.expired:
            del told["producers"]
    for subject in before:
        assert now[subject] == before[subject], subject


def test_the_open_transaction_ends(kept: Kept, talk: Talk) -> None:
    """By its producer, or by the broker once its time is up."""
    session = kept.session("open")
    if kept.expired:
        asked = {"transactional_ids": (OPEN,)}
        eventually(
            lambda: talk.told("describe_transactions", 0, **asked)["transaction_states"][0]["transaction_state"],
            lambda state: state == "CompleteAbort",
        )
        assert session.end(talk, commit=True) in (Code.invalid_producer_epoch, Code.producer_fenced)
    else:
        assert eventually(lambda: session.end(talk, commit=True), lambda code: code not in SOON) == Code.none
    written = ["open 0", "open 1"]
    transact(producer(kept.bootstrap, OPEN), "open", ["behind"])
    expected = ["behind"] if kept.expired else [*written, "behind"]
    eventually(lambda: kept.records("open"), lambda seen: seen == expected)
    assert kept.records("open", "read_uncommitted") == [*written, "behind"]
    pending = offsets(talk, [PENDING])[PENDING]
    assert pending == ([] if kept.expired else [["codecs", 0, 33, "in a transaction"]])


def test_an_idempotent_producer_goes_on(kept: Kept, talk: Talk) -> None:
    """A batch that is sent once more is known, unless its producer was silent for too long."""
    session, topic, now_ms = kept.session("steady"), "idempotent", round(time.time() * 1000)
    if not kept.expired:
        again = session.write(talk, topic, ["2", "3"], sequence=2, time_ms=now_ms)
        assert (again["error_code"], again["base_offset"]) == (Code.none, 2)
    told = session.write(talk, topic, ["4"], sequence=4, time_ms=now_ms)
    assert (told["error_code"], told["base_offset"]) == (Code.none, 4)
    gap = session.write(talk, topic, ["6"], sequence=6, time_ms=now_ms)
    assert gap["error_code"] == Code.out_of_order_sequence_number
    assert kept.records(topic) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(("protocol", "group"), [("classic", "classic"), ("consumer", "modern")])
def test_a_group_goes_on_where_it_was(kept: Kept, talk: Talk, protocol: str, group: str) -> None:
    committed = {(topic, index): offset for topic, index, offset, _ in kept.facts["observed"]["offsets"][group]}
    member = Member(kept.bootstrap, group, ["codecs"], group_protocol=protocol)
    member.until_owns(PARTITIONS)
    read_now = member.until_read(sum(50 - committed.get(("codecs", index), 0) for index in range(PARTITIONS)))
    first = {index: min(one.offset() for one in read_now if one.partition() == index) for index in range(PARTITIONS)}
    assert first == {index: committed.get(("codecs", index), 0) for index in range(PARTITIONS)}
    member.commit([TopicPartition("codecs", 3, 50)])
    member.close()
    assert ["codecs", 3, 50, ""] in offsets(talk, [group])[group]


def test_a_share_group_delivers_only_what_nobody_took(kept: Kept) -> None:
    assert send(kept.bootstrap, "shared", [Sent(b"accept 6")]).errors == {}
    with Sharers(kept.folder, kept.bootstrap, group="sharing", topic="shared") as sharers:
        values = eventually(sharers.got, lambda seen: len(seen) >= 3)
        assert sorted(value for value, _ in values) == ["accept 0", "accept 5", "accept 6"]


def test_it_takes_records_and_topics_and_starts_again(kept: Kept) -> None:
    for topic in ("plain", "codecs", "compacted", "transactions"):
        assert send(kept.bootstrap, topic, [Sent(b"more", b"key")], compression_type="lz4").errors == {}
    transact(producer(kept.bootstrap, "committing"), "transactions", ["committed"])
    eventually(lambda: kept.records("transactions"), lambda seen: "committed" in seen)  # its marker may come later
    make_topic(kept.bootstrap, "new")
    before = kept.lasting()
    (kept.broker.stop if kept.expired else kept.broker.kill)()
    kept.broker.start()
    after = kept.lasting()
    for subject in before:
        assert after[subject] == before[subject], subject
