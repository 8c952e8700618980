"""Settings of groups: what may be set, as Kafka 4.1.1 says it, and what holds then."""

import pytest
from ottla.config.describe import Source, Synonym
from ottla.config.group import check_group_setting, describe_group, group_setting
from ottla.config.table import BROKER

RESET = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."


def broker(name: str) -> object:
    return BROKER[name].default


GOOD = [
    ("share.auto.offset.reset", "earliest"),
    ("share.auto.offset.reset", "by_duration:PT1H"),
    ("share.auto.offset.reset", "by_duration:P2DT3H4M5.5S"),
    ("share.isolation.level", "read_committed"),
    ("share.session.timeout.ms", "50000"),
    ("share.record.lock.duration.ms", "15000"),
    ("consumer.session.timeout.ms", "50000"),
]
BAD = [
    ("share.auto.offset.reset", "EARLIEST", RESET),
    ("share.auto.offset.reset", "none", f"Invalid value `none` for configuration share.auto.offset.reset. {RESET}"),
    ("share.auto.offset.reset", "by_duration:-PT1H", RESET),
    ("share.auto.offset.reset", "by_duration:P", RESET),
    ("share.auto.offset.reset", "by_duration:PT", RESET),
    ("share.isolation.level", "READ_COMMITTED", "String must be one of: read_committed, read_uncommitted"),
    ("share.isolation.level", "", "String must be one of: read_committed, read_uncommitted"),
    (
        "share.record.lock.duration.ms",
        "1",
        "for configuration share.record.lock.duration.ms: Value must be at least 1000",
    ),
    ("share.record.lock.duration.ms", "70000", "less than or equal to group.share.max.record.lock.duration.ms"),
    ("share.record.lock.duration.ms", "x", "Not a number of type INT"),
    ("share.session.timeout.ms", "1", "greater than or equal to group.share.min.session.timeout.ms"),
    ("share.heartbeat.interval.ms", "16000", "less than or equal to group.share.max.heartbeat.interval.ms"),
    ("share.foo", "1", "Unknown group config name: share.foo"),
]


@pytest.mark.parametrize(("name", "text"), GOOD)
def test_good(name: str, text: str) -> None:
    assert check_group_setting(name, text, broker) is None


@pytest.mark.parametrize(("name", "text", "why"), BAD)
def test_bad(name: str, text: str, why: str) -> None:
    problem = check_group_setting(name, text, broker)
    assert problem is not None and problem.endswith(why)


def test_what_holds() -> None:
    assert group_setting("share.session.timeout.ms", {}, broker) == 45_000
    assert group_setting("share.session.timeout.ms", {"share.session.timeout.ms": "1"}, broker) == 45_000, "the least"
    assert group_setting("share.record.lock.duration.ms", {"share.record.lock.duration.ms": "20000"}, broker) == 20_000
    assert group_setting("share.auto.offset.reset", {}, broker) == "latest"
    assert (
        group_setting("share.isolation.level", {"share.isolation.level": "read_committed"}, broker) == "read_committed"
    )


def test_how_it_is_described() -> None:
    own = {"share.isolation.level": "read_committed"}
    entries = {entry.name: entry for entry in describe_group(own, broker)}
    isolation, beat = entries["share.isolation.level"], entries["share.heartbeat.interval.ms"]
    assert isolation.synonyms == [Synonym("share.isolation.level", "read_committed", Source.GROUP)]
    assert beat.synonyms == [Synonym("share.heartbeat.interval.ms", "5000", Source.DEFAULT)]
    assert (isolation.is_default, beat.is_default) == (False, True)
