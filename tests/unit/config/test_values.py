import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.config import BROKER, TOPIC, BadValue, check_broker_setting, check_topic_setting, parse, render


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", "-1", -1),
        ("retention.ms", " +5000 ", 5000),
        ("preallocate", " True", True),
        ("min.cleanable.dirty.ratio", "1e-1", 0.1),
        ("min.cleanable.dirty.ratio", ".5f", 0.5),
        ("cleanup.policy", " compact , delete ", ("compact", "delete")),
        ("cleanup.policy", "", ()),
        ("compression.type", " zstd ", "zstd"),
        ("leader.replication.throttled.replicas", "*", ("*",)),
    ],
)
def test_topic_values(name, text, value):
    assert parse(TOPIC[name], text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "9" * 5000),
        ("retention.ms", "٣"),
        ("retention.ms", "0x10"),
        ("max.message.bytes", "2147483648"),
        ("min.cleanable.dirty.ratio", "0,5"),
        ("min.cleanable.dirty.ratio", ""),
        ("preallocate", "1"),
    ],
)
def test_values_that_kafka_does_not_take_either(name, text):
    with pytest.raises(BadValue):
        parse(TOPIC[name], text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.0005, "5.0E-4"),
        (-0.0001234, "-1.234E-4"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (9999999.5, "9999999.5"),
        (float("inf"), "Infinity"),
        (("a", "b"), "a,b"),
        ((), ""),
        (2**63 - 1, "9223372036854775807"),
    ],
)
def test_spelling_is_javas(value, text):
    assert render(value) == text


@given(st.floats(allow_nan=False))
def test_numbers_read_back(value):
    assert parse(BROKER["log.cleaner.io.max.bytes.per.second"], render(value)) == value


@given(st.sampled_from(sorted(BROKER)), st.text())
def test_any_text_is_taken_or_refused_with_a_sentence(name, text):
    assert check_broker_setting(name, text, dynamic=False) != ""


@given(st.sampled_from(sorted(TOPIC)), st.text())
def test_check_and_parse_agree(name, text):
    if check_topic_setting(name, text) is None:
        value = parse(TOPIC[name], text)
        assert parse(TOPIC[name], render(value)) == value or value != value
    elif name != "remote.storage.enable":
        with pytest.raises(BadValue):
            parse(TOPIC[name], text)
