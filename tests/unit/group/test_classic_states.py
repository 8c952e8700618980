"""The transition table: complete, and nothing leads out of it."""

import itertools

import pytest
from ottla.group.classic.group import ClassicGroup, Rules
from ottla.group.classic.states import NEXT, Event, State

# Kafka's own table: state → the states from which it may be entered.
ENTERED_FROM = {
    State.EMPTY: {State.PREPARING},
    State.PREPARING: {State.STABLE, State.COMPLETING, State.EMPTY},
    State.COMPLETING: {State.PREPARING},
    State.STABLE: {State.COMPLETING},
    State.DEAD: {State.EMPTY},
}


def group_in(state: State) -> ClassicGroup:
    group = ClassicGroup("g", Rules(new_id=str, wall_ms=lambda: 5))
    group.current = state
    return group


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_every_pair_leads_where_the_table_says_or_nowhere(state: State, event: Event) -> None:
    group = group_in(state)
    if (state, event) not in NEXT:
        with pytest.raises(KeyError):
            group.enter(event)
        assert group.current is state
        return
    group.enter(event)
    assert group.previous is state
    assert state in ENTERED_FROM[group.current]


def test_every_way_that_kafka_knows_exists() -> None:
    ways = {(before, after) for (before, _), after in NEXT.items()}
    assert ways == {(before, after) for after, all_before in ENTERED_FROM.items() for before in all_before}
