"""kill -9 of a partition's leader under the load of one producer and one consumer."""

from support.fleet import FleetOf
from support.polling import PollingConsumer
from support.steady import SteadyProducer
from support.waiting import eventually

__all__ = ["kill_leader_under_load"]

PROGRESS_S_MAX = 60.0


def kill_leader_under_load(
    fleet: FleetOf, topic: str, producer: SteadyProducer, consumer: PollingConsumer, *, records: int
) -> tuple[int, dict[str, float]]:
    """Who was killed, and for how long each client heard nothing; both are back for good after so many records."""
    _progress(producer, consumer, records)
    victim = fleet.leader_of(topic)
    producer.silence.reset()
    consumer.silence.reset()
    fleet.members[victim].kill()
    _progress(producer, consumer, records)
    return victim, {"producer": producer.silence.longest_s, "consumer": consumer.silence.longest_s}


def _progress(producer: SteadyProducer, consumer: PollingConsumer, records: int) -> None:
    producer.wait_for_progress(records, timeout_s=PROGRESS_S_MAX)
    before = len(consumer.reads)
    eventually(lambda: len(consumer.reads), lambda seen: seen > before + records // 2, timeout_s=PROGRESS_S_MAX)
