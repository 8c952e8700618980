"""What a share group sets for itself."""

import pytest
from ottla.share.settings import ShareSettings, duration_ms


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H", 3_600_000),
        ("pt90s", 90_000),
        ("P2DT3H4M5.5S", 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5_500),
        ("PT-5M", -300_000),
        ("-PT5M", -300_000),
        ("PT0S", 0),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "PT1", "P1Y", "PT1H ", "PT5M1H"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        duration_ms(text)


def test_over_the_brokers() -> None:
    assert ShareSettings.of({}, {"group.share.record.lock.duration.ms": 30_000}.__getitem__) == (
        30_000,
        "latest",
        False,
    )
    own = {
        "share.record.lock.duration.ms": "15000",
        "share.auto.offset.reset": "by_duration:PT1H",
        "share.isolation.level": "READ_COMMITTED",
    }
    assert ShareSettings.of(own, {"group.share.record.lock.duration.ms": 1}.__getitem__) == (
        15_000,
        "by_duration:pt1h",
        True,
    )
