"""Which of the topics that an expression matches its members may know of. Pure.

As in Kafka, the members of a group that share an expression share its topics: those that the member may describe whose
heartbeat came first when topics or ACLs had changed. Until then what the log says stays.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ottla.group.consumer.topic_matching import TopicExpressions

__all__ = ["Unseen", "VisibleTopics"]

KEPT_MAX = 10_000
NAMES_MAX = 1_000_000  # in sets of their own: some 50 bytes each


class Unseen(NamedTuple):
    """Topics of which somebody has to say whether they may be described. `acls`: what that answer holds for."""

    matched: frozenset[str]
    acls: object


class VisibleTopics:
    """`acls` returns another object whenever they have changed. `is_open`: without an authorizer everybody sees all."""

    def __init__(self, expressions: TopicExpressions, *, acls: Callable[[], object], is_open: bool) -> None:
        self._expressions = expressions
        self._acls = acls
        self._is_open = is_open
        self._kept: dict[tuple[str, str], tuple[Unseen, frozenset[str]]] = {}
        self._names = 0

    def check(self, text: str) -> None:
        """KafkaError: INVALID_REGULAR_EXPRESSION."""
        self._expressions.check(text)

    def matched(self, group_id: str, text: str, topics: Mapping[str, Any]) -> frozenset[str] | None:
        """Those of these topics; None while that is not known."""
        found = self._expressions.matched(text, topics)
        if found is None or self._is_open:
            return found
        kept = self._kept.get((group_id, text))
        return kept[1] if kept is not None and self._holds(kept[0], found) else None

    def unseen(self, group_id: str, text: str, topics: Mapping[str, Any], *, is_new: bool) -> Unseen | None:
        """None when there is nothing to be asked. `is_new`: nobody in the group has had this expression, so what was
        kept of it was for others."""
        found = self._expressions.matched(text, topics)
        if found is None or self._is_open:
            return None
        kept = None if is_new else self._kept.get((group_id, text))
        return None if kept is not None and self._holds(kept[0], found) else Unseen(found, self._acls())

    def accept(self, group_id: str, text: str, unseen: Unseen, hidden: frozenset[str]) -> None:
        self._drop((group_id, text))
        visible = unseen.matched - hidden if hidden else unseen.matched
        self._kept[group_id, text] = unseen, visible
        self._names += _own_names(unseen, visible)
        while len(self._kept) > 1 and (len(self._kept) > KEPT_MAX or self._names > NAMES_MAX):
            self._drop(next(iter(self._kept)))  # the oldest is asked for again

    def _drop(self, key: tuple[str, str]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._names -= _own_names(*kept)

    @property
    def kept(self) -> Iterable[tuple[str, str]]:
        """Groups and expressions, the oldest first."""
        return self._kept.keys()

    def forget(self) -> None:
        """Groups come from another broker, where others may have been their members since they were here."""
        self._kept.clear()
        self._names = 0

    def _holds(self, seen: Unseen, found: frozenset[str]) -> bool:
        return seen.acls is self._acls() and (seen.matched is found or seen.matched == found)


def _own_names(unseen: Unseen, visible: frozenset[str]) -> int:
    """None of what is shown whole: the expression has that set."""
    return 0 if visible is unseen.matched else len(visible)
