"""Every sabotage finds the line that it changes: code that moves takes its sabotages along."""

from pathlib import Path

import pytest
from sim.mutations import MUTATIONS, Mutation

SOURCES = Path(__file__).parents[3] / "broker" / "ottla"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_its_line_is_there(mutation: Mutation) -> None:
    assert mutation.line in (SOURCES / mutation.file).read_text()
