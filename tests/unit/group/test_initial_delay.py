"""How long a new group waits for more members, by what the operator said."""

from ottla.group.coordinator import INITIAL_DELAY, UNSET_INITIAL_DELAY_MS, initial_delay_ms


def test_what_was_set_is_meant() -> None:
    assert initial_delay_ms(3000, {INITIAL_DELAY: "3000"}) == 3000
    assert initial_delay_ms(0, {INITIAL_DELAY: "0"}) == 0


def test_the_default_is_not_waited_for_in_full() -> None:
    assert initial_delay_ms(3000, {"group.max.size": "3"}) == UNSET_INITIAL_DELAY_MS < 3000
