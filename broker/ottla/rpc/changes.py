"""The calls by which people and the operator change the cluster, with what they name, for the audit trail. Pure.

What a node submits is not here: whoever asked it is in its own trail.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["CHANGES"]

CONTROL = "/ottla.pb.Control/"


def _broker(request: Any) -> Iterable[str]:
    return [f"Broker:{request.broker}"]


def _voter(request: Any) -> Iterable[str]:
    return [f"Voter:{request.node}"]


def _moves(request: Any) -> Iterable[str]:
    for move in request.moves:
        yield f"Topic:{move.topic}-{move.partition} to {','.join(map(str, move.replicas)) or 'where it was'}"


def _topics(request: Any) -> Iterable[str]:
    return (f"Topic:{topic.name} ({','.join(sorted(topic.configs))})" for topic in request.topics)


CHANGES: Mapping[str, Callable[[Any], Iterable[str]]] = {
    f"{CONTROL}Drain": _broker,
    f"{CONTROL}Reassign": _moves,
    f"{CONTROL}Unregister": _broker,
    f"{CONTROL}AddVoter": _voter,
    f"{CONTROL}RemoveVoter": _voter,
    f"{CONTROL}RotateScram": lambda request: [f"User:{request.user}"],  # never its keys
    f"{CONTROL}CreateTopics": _topics,
    f"{CONTROL}AlterTopics": _topics,
    f"{CONTROL}DeleteTopics": lambda request: (f"Topic:{name}" for name in request.names),
}
"""By their methods."""
