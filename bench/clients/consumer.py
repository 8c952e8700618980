"""librdkafka consumer that catches up over one partition by assign().

Arguments: bootstrap, topic, records. Prints JSON.
"""

import json
import sys
import time

from confluent_kafka import Consumer, TopicPartition
from connecting import connection


def main(bootstrap: str, topic: str, count: int) -> None:
    settings = {"group.id": "unused", "enable.auto.commit": False, "queued.max.messages.kbytes": 262_144}
    larger = {"fetch.message.max.bytes": 4_194_304, "queued.min.messages": 300_000}
    consumer = Consumer({**connection(bootstrap), **settings, **larger})
    begin = time.perf_counter()
    consumer.assign([TopicPartition(topic, 0, 0)])
    records = size = 0
    while records < count:
        for message in consumer.consume(10_000, 5.0):
            assert message.error() is None, message.error()
            size += len(message)
            records += 1
    seconds = time.perf_counter() - begin
    consumer.close()
    print(json.dumps({"seconds": seconds, "records": records, "bytes": size}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
