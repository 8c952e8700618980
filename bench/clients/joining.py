"""librdkafka consumers of one group, all in this process: how long until everybody has its final share.

Arguments: bootstrap, topic, partitions, members, protocol (classic or consumer), group. Prints JSON. The time runs from
the first subscribe to the moment when all partitions have exactly one owner and all members their equal share. The
clients' settings are librdkafka's own, but for the protocol.
"""

import json
import sys
import time
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

DEADLINE_S = 90.0
PAUSE_S = 0.005


class Shares:
    """Who owns what, from the members' callbacks."""

    def __init__(self, members: int, partitions: int) -> None:
        self._owned: list[set[int]] = [set() for _ in range(members)]
        self._partitions = partitions
        self.changes = 0

    def assigned(self, number: int) -> Callable[[Consumer, list[TopicPartition]], None]:
        def take(_: Consumer, partitions: list[TopicPartition]) -> None:
            self._owned[number] |= {one.partition for one in partitions}
            self.changes += 1

        return take

    def revoked(self, number: int) -> Callable[[Consumer, list[TopicPartition]], None]:
        def give_up(_: Consumer, partitions: list[TopicPartition]) -> None:
            self._owned[number] -= {one.partition for one in partitions}
            self.changes += 1

        return give_up

    @property
    def final(self) -> bool:
        share = self._partitions // len(self._owned)
        everything = set().union(*self._owned)
        return all(len(owned) == share for owned in self._owned) and len(everything) == self._partitions

    @property
    def sizes(self) -> list[int]:
        return [len(owned) for owned in self._owned]


def main(bootstrap: str, topic: str, partitions: int, members: int, protocol: str, group: str) -> None:
    assert partitions % members == 0, "equal shares only"
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol}
    consumers = [Consumer(settings) for _ in range(members)]
    for consumer in consumers:
        consumer.list_topics(topic)  # connected, as programs are that have done something before
    shares = Shares(members, partitions)
    begin = time.perf_counter()
    for number, consumer in enumerate(consumers):
        callbacks = {"on_assign": shares.assigned(number), "on_revoke": shares.revoked(number)}
        consumer.subscribe([topic], **callbacks, on_lost=shares.revoked(number))
    while not shares.final:
        for consumer in consumers:
            message = consumer.poll(0)
            assert message is None or message.error() is None, message.error()
        assert time.perf_counter() - begin < DEADLINE_S, f"not settled: {shares.sizes}"
        time.sleep(PAUSE_S)
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "changes": shares.changes}), flush=True)
    for consumer in consumers:
        consumer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6])
