"""Answers about partitions, gathered by topic as responses want them."""

from collections.abc import Iterable, Iterator, Sequence

from ottla.errors import KafkaError
from ottla.metadata.commands import Outcome, PartitionRef

__all__ = ["by_topic", "refused"]

PartitionOutcome = Outcome[PartitionRef]


def by_topic(outcomes: Iterable[PartitionOutcome]) -> Iterator[tuple[str, Sequence[PartitionOutcome]]]:
    gathered: dict[str, list[PartitionOutcome]] = {}
    for outcome in outcomes:
        gathered.setdefault(outcome.value[0], []).append(outcome)
    return iter(gathered.items())


def refused(partitions: Iterable[PartitionRef], error: KafkaError) -> list[PartitionOutcome]:
    """Where a request failed as a whole, each partition did."""
    return [Outcome(ref, error.code, error.message) for ref in partitions]
