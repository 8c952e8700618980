"""Which layer's value holds, typed."""

from ottla.config import BROKER, TOPIC, configure, effective_broker, effective_topic, without_effect


def static(**settings: str):
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return configure(given, dict.fromkeys(given, "file"))


def test_every_setting_has_a_typed_value():
    config = static()
    assert effective_topic(config, {}, {}, {}) == {name: setting.default for name, setting in TOPIC.items()}
    assert effective_broker(config, {}, {}) == {name: setting.default for name, setting in BROKER.items()}


def test_the_strongest_layer_holds():
    config = static(log_retention_ms="1")
    cluster, broker, topic = {"log.retention.ms": "2"}, {"log.retention.ms": "3"}, {"retention.ms": "4"}
    assert effective_topic(config, {}, {}, {})["retention.ms"] == 1
    assert effective_topic(config, cluster, {}, {})["retention.ms"] == 2
    assert effective_topic(config, cluster, broker, {})["retention.ms"] == 3
    assert effective_topic(config, cluster, broker, topic)["retention.ms"] == 4


def test_other_units_of_the_same_thing():
    assert effective_topic(static(log_retention_hours="2"), {}, {}, {})["retention.ms"] == 7_200_000
    assert (
        effective_topic(static(log_retention_hours="2", log_retention_minutes="1"), {}, {}, {})["retention.ms"]
        == 60_000
    )
    assert effective_topic(static(log_retention_hours="-1"), {}, {}, {})["retention.ms"] == -1
    assert effective_topic(static(log_roll_hours="1"), {}, {}, {})["segment.ms"] == 3_600_000
    assert effective_topic(static(log_roll_jitter_hours="1"), {}, {}, {})["segment.jitter.ms"] == 3_600_000
    assert effective_topic(static(log_flush_scheduler_interval_ms="9"), {}, {}, {})["flush.ms"] == 9
    both = static(log_flush_scheduler_interval_ms="9", log_flush_interval_ms="8")
    assert effective_topic(both, {}, {}, {})["flush.ms"] == 8


def test_a_dynamic_value_silences_the_files_other_units():
    config = static(log_retention_minutes="5")
    assert effective_broker(config, {"log.retention.ms": "7"}, {})["log.retention.minutes"] is None
    assert effective_topic(config, {"log.retention.ms": "7"}, {}, {})["retention.ms"] == 7


def test_a_stored_value_that_no_longer_fits_is_passed_over():
    config = static()
    assert effective_topic(
        config, {"message.max.bytes": "x"}, {}, {"retention.ms": "y", "gone": "1"}
    ) == effective_topic(config, {}, {}, {})


def test_a_tiny_segment_size_for_tests_stands_in_for_the_real_one():
    assert effective_topic(static(), {}, {}, {"internal.segment.bytes": "500"})["segment.bytes"] == 500


def test_topics_that_set_the_same_share_one_mapping():
    config = static()
    first = effective_topic(config, {}, {}, {"retention.ms": "5", "segment.ms": "6"})
    assert effective_topic(config, {}, {}, {"segment.ms": "6", "retention.ms": "5"}) is first


def test_what_only_a_file_may_give_for_a_listener_is_ignored_elsewhere():
    handler = "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class"
    cluster = {"listener.name.sasl.ssl.keystore.location": "/x", "log.retention.ms": "7"}
    broker = {handler: "a.B", "listener.name.sasl.max.connections": "3"}
    values = effective_broker(static(), cluster, broker)
    assert values["log.retention.ms"] == 7
    assert values["listener.name.sasl.max.connections"] == 3
    assert handler not in values and "listener.name.sasl.ssl.keystore.location" not in values
    assert without_effect(cluster, broker) == [handler, "listener.name.sasl.ssl.keystore.location"]
