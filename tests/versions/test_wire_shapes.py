"""Names and numbers on the wire between nodes: this version may add fields that need not be there, and change nothing.

A roll would not always notice a field that was renamed: an absent one has its default.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ottla
import pytest

PROGRAM = Path(__file__).with_name("wire_shapes.py")
THIS = Path(ottla.__file__).parents[1]


def shapes_of(code: Path) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(code)}
    done = subprocess.run([sys.executable, str(PROGRAM)], env=environment, capture_output=True, text=True, check=True)
    shapes: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return shapes


def changes(old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is missing or differs, and what was added to a struct and has to be there."""
    found = [f"{name} is missing" for name in old.keys() - new.keys()]
    for name in old.keys() & new.keys():
        found += [f"{name}.{field} was {was}" for field, was in old[name].items() if new[name].get(field) != was]
        added = {field: new[name][field] for field in new[name].keys() - old[name].keys()}
        found += [f"{name}.{field} is required" for field, (required, _) in added.items() if required is True]
    return found


def test_this_version_says_what_the_one_before_said(previous_code: Path) -> None:
    before, now = shapes_of(previous_code), shapes_of(THIS)
    for kind, shapes in before.items():
        assert len(shapes) > 40, "the program finds what nodes send"
        assert changes(shapes, now[kind]) == []


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        ({"Ask": {"key": [True, "str"], "more": [False, "int"]}, "Other": {}}, []),
        ({"Ask": {"key": [True, "str"], "more": [True, "int"]}}, ["Ask.more is required"]),
        ({"Ask": {"name": [False, "str"]}}, ["Ask.key was [True, 'str']"]),
        ({}, ["Ask is missing"]),
    ],
)
def test_what_is_a_change(new: dict[str, dict[str, Any]], complaint: list[str]) -> None:
    assert changes({"Ask": {"key": [True, "str"]}}, new) == complaint
