"""What a share group sets for itself."""

from ottla.share.settings import ShareSettings

BROKER = {
    "group.share.record.lock.duration.ms": 30_000,
    "group.share.min.record.lock.duration.ms": 15_000,
    "group.share.max.record.lock.duration.ms": 60_000,
}


def test_over_the_brokers() -> None:
    assert ShareSettings.of({}, BROKER.__getitem__) == (30_000, "latest", False)
    own = {
        "share.record.lock.duration.ms": "20000",
        "share.auto.offset.reset": "by_duration:PT1H ",
        "share.isolation.level": "read_committed",
    }
    assert ShareSettings.of(own, BROKER.__getitem__) == (20_000, "by_duration:PT1H", True)


def test_within_the_brokers_limits_of_today() -> None:
    """They may have been narrowed since the group was given its own."""
    own = {"share.record.lock.duration.ms": "1000"}
    assert ShareSettings.of(own, BROKER.__getitem__).lock_ms == 15_000
