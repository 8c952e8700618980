"""Members of a group with a client for Python; they report what happens as Java's VerifiableConsumer does.

`python -m support.python_member KIND BOOTSTRAP TOPIC SESSION_MS INSTANCE_ID COOPERATIVE COUNT`: so many members in this
process, each with a number. SIGTERM lets them leave.
"""

import asyncio
import faulthandler
import json
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import aiokafka
import confluent_kafka
import kafka
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

POLL_MS = 100
# kafka-python 3.0.12 now and then forgets a joining that outlasts a poll: it has no partitions then and sends no more
# heartbeats, whoever the broker is.
LONG_POLL_MS = 1000
stopping = False


class Teller:
    def __init__(self, member: int) -> None:
        self._member = member

    def moved(self, name: str, partitions: Iterable[Any]) -> None:
        places = [{"topic": one.topic, "partition": one.partition} for one in partitions]
        self._say({"name": name, "partitions": places})

    def consumed(self, partitions: Iterable[int]) -> None:
        """The partition of every record."""
        if counts := Counter(partitions):
            places = [{"partition": partition, "count": count} for partition, count in counts.items()]
            self._say({"name": "records_consumed", "count": counts.total(), "partitions": places})

    def _say(self, what: dict[str, object]) -> None:
        # In one write: threads share the stream.
        sys.stdout.write(json.dumps({**what, "member": self._member}) + "\n")
        sys.stdout.flush()


class KafkaPythonListener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._teller.moved("partitions_assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._teller.moved("partitions_revoked", revoked)


class AiokafkaListener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self._teller.moved("partitions_assigned", assigned)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self._teller.moved("partitions_revoked", revoked)


def common(bootstrap: str, topic: str, session_ms: str, instance_id: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap.split(","),
        "group_id": topic,
        "session_timeout_ms": int(session_ms),
        "heartbeat_interval_ms": 300,
        "auto_offset_reset": "earliest",
        "group_instance_id": instance_id or None,
    }


def places_of(polled: dict[Any, list[Any]]) -> list[int]:
    return [place.partition for place, records in polled.items() for _ in records]


def make_kafka_python(teller: Teller, topic: str, settings: dict[str, Any], cooperative: bool) -> Callable[[], None]:
    strategy = {"partition_assignment_strategy": [CooperativeStickyAssignor]} if cooperative else {}
    consumer = kafka.KafkaConsumer(**settings, **strategy)

    def run() -> None:
        consumer.subscribe([topic], listener=KafkaPythonListener(teller))
        while not stopping:
            teller.consumed(places_of(consumer.poll(timeout_ms=LONG_POLL_MS)))
        consumer.close()

    return run


def make_librdkafka(teller: Teller, topic: str, settings: dict[str, Any], cooperative: bool) -> Callable[[], None]:
    """Of KIP-848, where the broker decides on sessions; classic members have `support.group_member`."""
    own = {"bootstrap.servers": ",".join(settings["bootstrap_servers"]), "group.protocol": "consumer"}
    named = {"group.instance.id": settings["group_instance_id"]} if settings["group_instance_id"] else {}
    consumer = confluent_kafka.Consumer({"group.id": topic, "auto.offset.reset": "earliest", **own, **named})

    def run() -> None:
        consumer.subscribe(
            [topic],
            on_assign=lambda _, places: teller.moved("partitions_assigned", places),
            on_revoke=lambda _, places: teller.moved("partitions_revoked", places),
            on_lost=lambda _, places: teller.moved("partitions_lost", places),
        )
        while not stopping:
            teller.consumed(one.partition() for one in consumer.consume(100, POLL_MS / 1000) if one.error() is None)
        consumer.close()

    return run


async def run_aiokafka(teller: Teller, topic: str, settings: dict[str, Any]) -> None:
    consumer = aiokafka.AIOKafkaConsumer(**settings)
    consumer.subscribe([topic], listener=AiokafkaListener(teller))
    await consumer.start()
    while not stopping:
        teller.consumed(places_of(await consumer.getmany(timeout_ms=POLL_MS)))
    await consumer.stop()


async def all_of_aiokafka(topic: str, settings: dict[str, Any], count: int) -> None:
    await asyncio.gather(*(run_aiokafka(Teller(number), topic, settings) for number in range(count)))


IN_THREADS: dict[str, Callable[[Teller, str, dict[str, Any], bool], Callable[[], None]]] = {
    "kafka-python": make_kafka_python,
    "librdkafka-consumer": make_librdkafka,
}


def stop(*_: object) -> None:
    global stopping
    stopping = True


def main(
    kind: str, bootstrap: str, topic: str, session_ms: str, instance_id: str, cooperative: str, count: str
) -> None:
    signal.signal(signal.SIGTERM, stop)
    faulthandler.register(signal.SIGUSR1)  # a test asks what a member does that does not get on
    settings = common(bootstrap, topic, session_ms, instance_id)
    if kind == "aiokafka":
        asyncio.run(all_of_aiokafka(topic, settings, int(count)))
        return
    # Made one after another: what a client sets up for the whole process when it is first used is not what is tested.
    made = [IN_THREADS[kind](Teller(number), topic, settings, cooperative == "1") for number in range(int(count))]
    for run in made:
        threading.Thread(target=run).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
