"""A classic consumer's conversation in every version, answered as Apache Kafka 4.1.1 answers it.

`OTTLA_REWRITE_GOLDEN=1 pytest tests/compat/test_groups_versions.py --peer=kafka` writes what Kafka says now.
"""

import os

import pytest
from golden.group_versions import FOLDER, ROUNDS, play, topic_of, wait_for_coordinator
from support.librdkafka import make_topic
from support.process import BrokerProcess

BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
REWRITE = "OTTLA_REWRITE_GOLDEN"


@pytest.mark.parametrize("number", ROUNDS)
def test_round(broker: BrokerProcess, number: int) -> None:
    make_topic(broker.bootstrap, topic_of(number))
    wait_for_coordinator(broker.port)
    path = FOLDER / f"round-{number}.txt"
    answered = play(broker.port, number)
    if os.environ.get(REWRITE):
        assert broker.name == "kafka", "what is golden comes from Apache Kafka"
        path.parent.mkdir(exist_ok=True)
        path.write_text(answered)
    assert answered.splitlines() == path.read_text().splitlines()
