"""What an image says in numbers."""

from types import SimpleNamespace
from typing import Any

from ottla.telemetry.core.counting import FleetCounts, PartitionCounts, count_fleet, count_partitions


def image() -> Any:
    def partition(leader: int, isr: list[int], replicas: list[int]) -> Any:
        return SimpleNamespace(leader=leader, isr=isr, replicas=replicas)

    topics = {
        "whole": SimpleNamespace(partitions=[partition(1, [1, 2], [1, 2]), partition(2, [2, 3], [2, 3])]),
        "ill": SimpleNamespace(partitions=[partition(1, [1], [1, 3]), partition(-1, [], [3])]),
    }
    brokers = {1: SimpleNamespace(fenced=False), 2: SimpleNamespace(fenced=False), 3: SimpleNamespace(fenced=True)}
    return SimpleNamespace(topics=topics, brokers=brokers)


def test_partitions_of_a_broker() -> None:
    assert count_partitions(image(), 1) == PartitionCounts(hosted=2, led=2, under_replicated=1)
    assert count_partitions(image(), 3) == PartitionCounts(hosted=3, led=0, under_replicated=0)


def test_the_fleet() -> None:
    assert count_fleet(image()) == FleetCounts(offline_partitions=1, active_brokers=2, fenced_brokers=1)
