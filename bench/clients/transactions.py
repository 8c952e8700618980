"""librdkafka producers in transactions of 100 records, for some seconds after some seconds of the same as a warm-up.

Arguments: bootstrap, topic, partitions, record bytes, producers, warm-up seconds, seconds. Each producer ends one
transaction before it begins the next. What a commit takes is measured when all its records are acknowledged. Prints
JSON.
"""

import json
import sys
import threading
import time

from confluent_kafka import Producer

RECORDS = 100
DEADLINE_S = 60
PERCENTILES = {"p50": 0.5, "p99": 0.99}


class Producing(threading.Thread):
    """`commits_s` has what each measured commit took."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, size: int, number: int) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{number}"})
        self._producer.init_transactions(DEADLINE_S)
        self._topic = topic
        value = bytes(i % 251 for i in range(size))
        self._messages = [{"value": value, "partition": i % partitions} for i in range(RECORDS)]
        self.commits_s: list[float] = []
        self.begin_s = self.end_s = 0.0

    def run(self) -> None:
        while time.perf_counter() < self.begin_s:
            self._transact()
        self.commits_s.clear()
        self.begin_s = time.perf_counter()
        while time.perf_counter() < self.end_s:
            self._transact()
        self.end_s = time.perf_counter()

    def _transact(self) -> None:
        self._producer.begin_transaction()
        self._producer.produce_batch(self._topic, self._messages)
        assert self._producer.flush(DEADLINE_S) == 0
        begin = time.perf_counter()
        self._producer.commit_transaction(DEADLINE_S)
        self.commits_s.append(time.perf_counter() - begin)


def main(
    bootstrap: str, topic: str, partitions: int, size: int, producers: int, warm_up_s: float, seconds: float
) -> None:
    running = [Producing(bootstrap, topic, partitions, size, number) for number in range(producers)]
    begin = time.perf_counter() + warm_up_s
    for one in running:
        one.begin_s, one.end_s = begin, begin + seconds
        one.start()
    for one in running:
        one.join()
        assert one.commits_s and one.end_s > one.begin_s + seconds / 2, "a producer failed"
    rate = sum(len(one.commits_s) / (one.end_s - one.begin_s) for one in running)
    times = sorted(1000 * took for one in running for took in one.commits_s)
    figures = {name: times[int(len(times) * share)] for name, share in PERCENTILES.items()}
    print(json.dumps({"bytes_per_s": rate * RECORDS * size, "transactions": len(times), **figures}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), *map(float, sys.argv[6:8]))
