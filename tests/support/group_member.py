"""A librdkafka consumer in a group: polls in a thread of its own, and knows what it owns and what it has read.

As a program (`python -m support.group_member SETTINGS TOPIC…`, settings as JSON) it prints a JSON line for every
change, so that a test can kill it.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from support.librdkafka import dotted
from support.steady import Silence
from support.waiting import eventually

POLL_S = 0.1
JOIN_S = 60.0


class Member:
    """Settings have underscores for dots. Offsets are committed only by `commit`, unless the settings say otherwise."""

    def __init__(self, bootstrap: str, group: str, topics: Iterable[str], **settings: Any) -> None:
        self.owned: set[tuple[str, int]] = set()
        self.assigned: list[set[tuple[str, int]]] = []  # what each assignment brought
        self.revoked: list[set[tuple[str, int]]] = []
        self.records: list[Message] = []
        self.errors: list[KafkaError] = []
        self.silence = Silence()
        self._wishes: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._leaving = threading.Event()
        self.settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            **dotted(settings),
        }
        self._cooperative = "cooperative" in str(self.settings.get("partition.assignment.strategy", ""))
        self.consumer = Consumer(self.settings)
        callbacks = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_revoke}
        self.consumer.subscribe(list(topics), **callbacks)
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = {(p.topic, p.partition) for p in partitions}
        self.assigned.append(places)
        self.owned = self.owned | places if self._cooperative else places

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = {(p.topic, p.partition) for p in partitions}
        self.revoked.append(places)
        self.owned = self.owned - places

    def _poll(self) -> None:
        while not self._leaving.is_set():
            self._grant_wishes()
            message = self.consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                self.records.append(message)
                self.silence.heard()
            elif message is not None and not message.error().retriable():
                self.errors.append(message.error())

    def _grant_wishes(self) -> None:
        while not self._wishes.empty():
            wish, granted = self._wishes.get()
            try:
                granted.set_result(wish())
            except KafkaException as refused:
                granted.set_exception(refused)

    def commit(self, offsets: list[TopicPartition] | None = None) -> None:
        """In the polling thread: the client allows one call at a time, and is nearly always polling."""
        what = {} if offsets is None else {"offsets": offsets}
        granted: Future[Any] = Future()
        self._wishes.put((lambda: self.consumer.commit(**what, asynchronous=False), granted))
        granted.result(JOIN_S)

    def until_owns(self, count: int) -> set[tuple[str, int]]:
        return eventually(lambda: self.owned, lambda owned: len(owned) == count, timeout_s=JOIN_S)

    def until_read(self, count: int) -> list[Message]:
        eventually(lambda: len(self.records), lambda read: read >= count, timeout_s=JOIN_S)
        return list(self.records)

    def close(self) -> None:
        """Leaves the group; a static member keeps its place."""
        self._leaving.set()
        self._thread.join()
        self.consumer.close()


class MemberProcess:
    """The same in a process that can be killed."""

    def __init__(self, bootstrap: str, group: str, topics: Iterable[str], **settings: Any) -> None:
        arguments = [json.dumps({"bootstrap": bootstrap, "group": group, **settings}), *topics]
        command = [sys.executable, "-m", "support.group_member", *arguments]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )

    def until_owns(self, count: int) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if len(json.loads(line)) == count:
                return
        raise AssertionError(f"the member ended before it owned {count} partitions")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def settled(members: list[Member], partitions: int, *, timeout_s: float = JOIN_S) -> None:
    """Until every partition is owned by exactly one of the members, and each has its fair share."""

    def shares() -> list[int]:
        owned = [member.owned for member in members]
        return [len(one) for one in owned] if len(set().union(*owned)) == sum(map(len, owned)) else []

    low, high = partitions // len(members), -(-partitions // len(members))
    eventually(
        shares,
        lambda sizes: sum(sizes) == partitions and low <= min(sizes) and max(sizes) <= high,
        timeout_s=timeout_s,
    )


def _main() -> None:
    given = json.loads(sys.argv[1])
    member = Member(given.pop("bootstrap"), given.pop("group"), sys.argv[2:], **given)
    printed: list[tuple[str, int]] | None = None
    while True:
        owned = sorted(member.owned)
        if owned != printed:
            print(json.dumps(owned), flush=True)
            printed = owned
        time.sleep(POLL_S)


if __name__ == "__main__":
    _main()
