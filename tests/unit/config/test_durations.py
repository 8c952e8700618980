"""Durations as Java reads them."""

import pytest
from ottla.config.durations import duration_ms


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H", 3_600_000),
        ("pt90s", 90_000),
        ("P2DT3H4M5.5S", 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5_500),
        ("PT-5M", -300_000),
        ("-PT5M", -300_000),
        ("PT0S", 0),
        ("PT1,5S", 1500),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "PT1", "P1Y", "PT1H ", "PT5M1H"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        duration_ms(text)
