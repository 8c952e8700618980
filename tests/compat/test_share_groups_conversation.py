"""What members of share groups and tools are answered, word for word as Apache Kafka 4.1.1 answers it.

`OTTLA_REWRITE_GOLDEN=1 pytest tests/compat/test_share_groups_conversation.py --peer=kafka` writes what Kafka says now.
"""

import os

from golden.group_versions import wait_for_coordinator
from golden.share_groups import GOLDEN, OTHER_TOPIC, PARTITIONS, TOPIC, ShareConversation, play
from support.frames import Connection
from support.librdkafka import make_topic
from support.process import BrokerProcess
from support.sharing import ONE_BROKER, turn_on

BROKER_SETTINGS = ONE_BROKER
REWRITE = "OTTLA_REWRITE_GOLDEN"
UNSUPPORTED_VERSION = 35


def test_conversation(broker: BrokerProcess) -> None:
    for topic in (TOPIC, OTHER_TOPIC):
        make_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    wait_for_coordinator(broker.port)
    with Connection(broker.port) as connection:
        asked = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": (TOPIC,)}
        refused = ShareConversation(connection).told("share_group_heartbeat", 1, **asked)
    assert refused.error_code == UNSUPPORTED_VERSION, "share groups are off until somebody turns them on"
    turn_on(broker.bootstrap)
    answered = play(broker.port)
    if os.environ.get(REWRITE):
        assert broker.name == "kafka", "what is golden comes from Apache Kafka"
        GOLDEN.write_text(answered)
    assert answered.splitlines() == GOLDEN.read_text().splitlines()
