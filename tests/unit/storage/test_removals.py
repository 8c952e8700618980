"""What was deleted waits for its readers."""

from ottla.storage.core.removals import Removals


def test_each_path_is_given_once_and_not_before_its_time() -> None:
    removals = Removals()
    removals.add(["a", "b"], due_ms=10)
    removals.add(["c"], due_ms=20)
    assert removals.take_due(9) == []
    assert removals.take_due(10) == ["a", "b"]
    assert len(removals) == 1
    assert removals.take_due(30) == ["c"]
    assert removals.take_due(30) == []
