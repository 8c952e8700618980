from ottla.config import BROKER, TOPIC
from ottla.config.effects import untrue

EVERYTHING_THAT_ACTS = "\n".join(
    f'"{name}"' for table in (TOPIC, BROKER) for name, one in table.items() if one.effect == "full"
)


def test_nothing_is_untrue_when_what_acts_is_named_and_nothing_else():
    assert untrue(EVERYTHING_THAT_ACTS) == []


def test_a_setting_that_nobody_reads_is_noticed():
    assert untrue(EVERYTHING_THAT_ACTS.replace('"num.partitions"', "")) == [
        'num.partitions: nothing names it; effect="none"?'
    ]


def test_a_setting_that_is_read_after_all_is_noticed():
    assert untrue(EVERYTHING_THAT_ACTS + '\nconfig["queued.max.requests"]') == [
        'queued.max.requests: has effect="none", but is named in the sources'
    ]


def test_the_fields_of_the_log_count():
    text = EVERYTHING_THAT_ACTS.replace('"retention.ms"', "    retention_ms: int = 5")
    assert untrue(text) == []
