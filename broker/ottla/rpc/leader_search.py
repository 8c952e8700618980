"""Whom to ask for the active controller: any node; one that does not lead it names the one that does.

The same search for people at a terminal (`cli/control.py`), who know addresses, and for the operator, which knows node
ids. Brokers need none: their own Raft tells them the leader (`forwarding.py`).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import grpc

__all__ = ["LEADER_ADDRESS_KEY", "LEADER_ID_KEY", "NOT_LEADING", "LeaderSearch", "named_leader"]

LEADER_ID_KEY, LEADER_ADDRESS_KEY = "ottla-leader", "ottla-leader-address"
# What a call ends with where another node may lead: for brokers as well.
NOT_LEADING = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.FAILED_PRECONDITION)
Node = TypeVar("Node")


class LeaderSearch(Generic[Node]):
    """Iterate over it to ask each node once, the likeliest leader first."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._waiting = list(nodes)
        self._asked: set[Node] = set()

    def __iter__(self) -> Iterator[Node]:
        while self._waiting:
            node = self._waiting.pop(0)
            if node not in self._asked:
                self._asked.add(node)
                yield node

    def ask_first(self, node: Node) -> None:
        """It is said to lead."""
        self._waiting.insert(0, node)


def named_leader(metadata: Iterable[Any] | None, key: str) -> str:
    """From a refusal's trailing metadata, pairs in both of gRPC's clients; empty when the node knows none."""
    return next((str(value) for name, value in metadata or () if name == key), "")
