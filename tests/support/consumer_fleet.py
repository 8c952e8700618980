"""Several librdkafka consumers of one group in this process, polled in turn until they have what a test expects."""

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Message
from support.librdkafka import dotted

__all__ = ["ConsumerFleet"]

SETTLE_S = 40.0
BASE = {"auto.offset.reset": "earliest", "session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
NOT_FOR_KIP_848 = ("session.timeout.ms", "heartbeat.interval.ms")  # the broker decides
Partitions = frozenset[tuple[str, int]]


class ConsumerFleet:
    """`messages` has what was read so far, in the order of polling."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._bootstrap = bootstrap
        self._group = group
        self.members: list[Consumer] = []
        self.messages: list[Message] = []
        self.errors: list[Any] = []

    def __enter__(self) -> "ConsumerFleet":
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.close()

    def join(self, *topics: str, protocol: str = "consumer", **settings: Any) -> Consumer:
        base = {name: value for name, value in BASE.items() if protocol == "classic" or name not in NOT_FOR_KIP_848}
        own = {"bootstrap.servers": self._bootstrap, "group.id": self._group, "group.protocol": protocol}
        member = Consumer({**base, **own, **dotted(settings)})
        if topics:
            member.subscribe(list(topics))
        self.members.append(member)
        return member

    def leave(self, member: Consumer) -> None:
        self.members.remove(member)
        member.close()

    def held(self) -> list[Partitions]:
        return [held_by(member) for member in self.members]

    def sizes(self) -> list[int]:
        return [len(each) for each in self.held()]

    def poll_until(self, is_right: Callable[[], bool], *, timeout_s: float = SETTLE_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_right():
            for member in self.members:
                self._take(member.poll(0.02))
            if time.monotonic() > deadline:
                raise AssertionError(f"not settled after {timeout_s} s: {self.sizes()}, errors {self.errors[-3:]}")

    def _take(self, message: Message | None) -> None:
        if message is None:
            return
        if message.error() is not None:
            self.errors.append(message.error())
        else:
            self.messages.append(message)

    def settle(self, *sizes: int, timeout_s: float = SETTLE_S) -> None:
        """Until everybody has as many partitions as expected, in any order, and none twice."""
        self.poll_until(lambda: sorted(self.sizes()) == sorted(sizes), timeout_s=timeout_s)
        everything = [partition for held in self.held() for partition in held]
        assert len(everything) == len(set(everything)), f"held twice: {sorted(everything)}"


def held_by(member: Consumer) -> Partitions:
    return frozenset((partition.topic, partition.partition) for partition in member.assignment())
