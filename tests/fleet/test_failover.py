"""kill -9 of a partition's leader under load, at default settings: how long clients stand still.

What makes it short in Ottla: a broker whose port refuses connections is fenced at once, since its kernel says that the
process is gone; one that only falls silent after `broker.session.timeout.ms`: 3 s, with a heartbeat every 0.5 s.
Apache Kafka at its defaults (9 s and 2 s) takes about 10 s.
"""

import pytest
from support.failover import kill_leader_under_load
from support.fleet import FleetOf
from support.librdkafka import make_topic
from support.polling import PollingConsumer, PollingJava, PollingLibrdkafka
from support.steady import SteadyJava, SteadyLibrdkafka, SteadyProducer

GAP_S_MAX = {"ottla": 3.0, "kafka": 20.0}
RECORDS_PER_SECOND = 500
# Enough of them after the kill to know that clients are back for good.
RECORDS_AFTER = 1000
KINDS: dict[str, tuple[type[SteadyProducer], type[PollingConsumer]]] = {
    "librdkafka": (SteadyLibrdkafka, PollingLibrdkafka),
    "java": (SteadyJava, PollingJava),
}


@pytest.mark.parametrize("kind", KINDS)
def test_clients_go_on_after_the_death_of_a_leader(fleet: FleetOf, name: str, kind: str) -> None:
    make_topic(fleet.bootstrap, name, replicas=3, min_insync_replicas="2")
    fleet.wait_in_sync()
    make_producer, make_consumer = KINDS[kind]
    producer = make_producer(fleet.bootstrap, name, partitions=1, rate=RECORDS_PER_SECOND)  # type: ignore[call-arg]
    consumer = make_consumer(fleet.bootstrap, name, partitions=1)  # type: ignore[call-arg]
    victim, gaps = kill_leader_under_load(fleet, name, producer, consumer, records=RECORDS_AFTER)
    producer.finish()
    consumer.close()
    print(f"{fleet.peer}, {kind}: {gaps}")
    assert max(gaps.values()) <= GAP_S_MAX[fleet.peer], gaps
    assert fleet.leader_of(name) != victim
    fleet.members[victim].start()
    fleet.wait_in_sync()
