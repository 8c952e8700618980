"""A librdkafka producer that writes one transaction after the other, whatever happens, and remembers how each ended."""

import threading
from collections import Counter

from confluent_kafka import KafkaException, Producer
from support.librdkafka import DEADLINE_S
from support.transactions import producer, write

ABORT_EVERY = 5


class SteadyTransactions:
    """Values are `<id>/<number>`, `size` times each, over all partitions.

    `committed` and `aborted` are what the fleet acknowledged; a number in neither may have ended either way.
    """

    def __init__(self, bootstrap: str, topic: str, transactional_id: str, *, partitions: int, size: int = 6) -> None:
        self.committed: set[str] = set()
        self.aborted: set[str] = set()
        self._bootstrap, self._topic, self._id = bootstrap, topic, transactional_id
        self._partitions, self._size = partitions, size
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> int:
        if self._failure is not None:
            raise self._failure
        return len(self.committed) + len(self.aborted)

    def finish(self) -> None:
        self._stop.set()
        self._thread.join(2 * DEADLINE_S)
        assert not self._thread.is_alive(), f"transactions of {self._id} hang"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        number = 0
        try:
            while not self._stop.is_set():
                made = producer(self._bootstrap, self._id, transaction_timeout_ms=20_000, socket_timeout_ms=5000)
                while not self._stop.is_set() and self._transact(made, number):
                    number += 1
                number += 1
        except BaseException as failure:  # a thread's failure is the test's
            self._failure = failure

    def _transact(self, made: Producer, number: int) -> bool:
        """False when the producer is of no use any more."""
        value, commits = f"{self._id}/{number}", number % ABORT_EVERY != 0
        try:
            made.begin_transaction()
            write(made, self._topic, [value] * self._size, partitions=self._partitions)
            if commits:
                made.commit_transaction(DEADLINE_S)
                self.committed.add(value)
            else:
                made.abort_transaction(DEADLINE_S)
                self.aborted.add(value)
        except KafkaException as error:
            return self._recover(made, value, error)
        return True

    def _recover(self, made: Producer, value: str, error: KafkaException) -> bool:
        if not error.args[0].txn_requires_abort():
            return False
        try:
            made.abort_transaction(DEADLINE_S)
        except KafkaException:
            return False
        self.aborted.add(value)
        return True

    def check(self, seen: Counter[str]) -> None:
        """Against everything that a read_committed consumer saw: none lost, doubled, torn, or read though aborted."""
        mine = {value: count for value, count in seen.items() if value.startswith(f"{self._id}/")}
        assert not self.committed - mine.keys(), f"lost: {sorted(self.committed - mine.keys())}"
        assert not self.aborted & mine.keys(), f"aborted, yet read: {sorted(self.aborted & mine.keys())}"
        wrong = {value: count for value, count in mine.items() if count != self._size}
        assert not wrong, f"torn or doubled: {wrong}"
