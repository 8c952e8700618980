"""Groups results of partitions by topic, as responses need them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from ottla.api.call import Call
from ottla.api.slices import each, encoded
from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import Outcome, PartitionRef
from ottla.wire.writer import EncodedArray

__all__ = ["at_once", "by_topic", "refused"]

PartitionOutcome = Outcome[PartitionRef]


def by_topic(outcomes: Iterable[PartitionOutcome]) -> Iterator[tuple[str, Sequence[PartitionOutcome]]]:
    gathered: dict[str, list[PartitionOutcome]] = {}
    for outcome in outcomes:
        gathered.setdefault(outcome.value[0], []).append(outcome)
    return iter(gathered.items())


def refused(partitions: Iterable[PartitionRef], error: KafkaError) -> list[PartitionOutcome]:
    """The same error for every partition, for a request that failed as a whole."""
    return [Outcome(ref, error.code, error.message) for ref in partitions]


Line = Callable[[str, Any], Awaitable[dict[str, int]]]


async def at_once(topics: Iterable[Any], line: Line, call: Call) -> list[dict[str, object]] | EncodedArray:
    """The lines of a response, where each partition may have to be waited for: those of a topic wait together.

    In a large request they are made one after the other.
    """
    if call.is_large:
        return await encoded(call, ("topics",), each(topics, lambda topic: _encoded_topic(topic, line, call), call))
    return [
        {"name": topic.name, "partitions": await asyncio.gather(*(line(topic.name, part) for part in topic.partitions))}
        for topic in topics
    ]


async def _encoded_topic(topic: Any, line: Line, call: Call) -> dict[str, object]:
    lines = each(topic.partitions, lambda part: line(topic.name, part), call)
    return {"name": topic.name, "partitions": await encoded(call, ("topics", "partitions"), lines)}
