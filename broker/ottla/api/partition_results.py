"""Answers about partitions, gathered by topic as responses want them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from ottla.errors import KafkaError
from ottla.metadata.commands import Outcome, PartitionRef

__all__ = ["at_once", "by_topic", "refused"]

PartitionOutcome = Outcome[PartitionRef]


def by_topic(outcomes: Iterable[PartitionOutcome]) -> Iterator[tuple[str, Sequence[PartitionOutcome]]]:
    gathered: dict[str, list[PartitionOutcome]] = {}
    for outcome in outcomes:
        gathered.setdefault(outcome.value[0], []).append(outcome)
    return iter(gathered.items())


def refused(partitions: Iterable[PartitionRef], error: KafkaError) -> list[PartitionOutcome]:
    """Where a request failed as a whole, each partition did."""
    return [Outcome(ref, error.code, error.message) for ref in partitions]


async def at_once(
    topics: Iterable[Any], line: Callable[[str, Any], Awaitable[dict[str, int]]]
) -> list[dict[str, object]]:
    """The lines of a response, where each partition may have to be waited for: those of a topic wait together."""
    return [
        {"name": topic.name, "partitions": await asyncio.gather(*(line(topic.name, part) for part in topic.partitions))}
        for topic in topics
    ]
