"""Every handler is given the parts that it names: they are there, and of the type that it expects."""

import dataclasses
from collections.abc import Iterator
from typing import Any, cast, get_type_hints

import pytest
from ottla.api.binding import bind
from ottla.api.registry import Api, load_all
from ottla.node.parts import Parts


def needs() -> Iterator[tuple[Api, str, type]]:
    for api in load_all().values():
        hints = get_type_hints(api.handler)
        for name in api.needs:
            yield api, name, hints[name]


def any_parts() -> Parts:
    return Parts(**{each.name: cast(Any, f"the {each.name}") for each in dataclasses.fields(Parts)})


def test_names_and_types() -> None:
    there = get_type_hints(Parts)
    wrong = [f"{api.name} wants {name}: {kind}" for api, name, kind in needs() if there.get(name) is not kind]
    assert not wrong


def test_nothing_is_there_that_nobody_needs() -> None:
    assert {each.name for each in dataclasses.fields(Parts)} == {name for _, name, _ in needs()}


def test_all_are_bound() -> None:
    bound = bind(any_parts().by_name())
    assert bound.keys() == load_all().keys()
    assert cast(Any, bound[16]).__defaults__ == ("the groups",)
    assert cast(Any, bound[24]).__defaults__ == ("the transactions", "the feed"), "in the order of its parameters"


def test_a_part_that_is_missing_is_named() -> None:
    parts = {name: part for name, part in any_parts().by_name().items() if name != "groups"}
    with pytest.raises(LookupError, match="needs groups, which the node does not have"):
        bind(parts)


def test_two_nodes_in_one_process() -> None:
    """The table of APIs is everybody's: it holds no node's parts."""
    one, other = (bind({**any_parts().by_name(), "groups": each}) for each in ("one", "other"))
    assert cast(Any, one[16]).__defaults__ != cast(Any, other[16]).__defaults__
    assert cast(Any, load_all()[12].handler).__defaults__ is None
