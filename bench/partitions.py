"""One Ottla broker with 10,000 partitions: create, Metadata, restart, memory.

By hand: `python -m bench.partitions [COUNT]`.
"""

import sys
import tempfile
import time
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from rich.console import Console
from support.frames import Connection, decode_response, encode_request, framed
from support.ottla_broker import OttlaBroker

TOPIC_PARTITIONS = 1000
METADATA_ROUNDS = 20


def main(count: int) -> None:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="bench-partitions-") as folder:
        broker = OttlaBroker(Path(folder))
        broker.start()
        try:
            report(console, f"create {count:,} partitions", seconds(lambda: create(broker, count)))
            metadata_times(console, broker)
            report(console, "orderly stop", seconds(broker.stop))
            report(console, "restart to ready", seconds(broker.start))
            metadata_times(console, broker)
            broker.kill()
            report(console, "restart to ready after kill -9", seconds(broker.start))
            open_files = psutil.Process(broker.pid).num_fds()
            console.print(f"memory {broker.resident_bytes() / 1e6:.0f} MB, open files {open_files}")
        finally:
            broker.close()


def create(broker: OttlaBroker, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for number in range(count // TOPIC_PARTITIONS):
        name = f"many-{number}"
        admin.create_topics([NewTopic(name, TOPIC_PARTITIONS, 1)], request_timeout=60)[name].result(120)


def metadata_times(console: Console, broker: OttlaBroker) -> None:
    """As a new client asks: everything at once. The answer is decoded once, outside the clock."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    with Connection(broker.port) as connection:
        times = []
        for _ in range(METADATA_ROUNDS):
            begin = time.perf_counter()
            connection.send(framed(encode_request(request)))
            payload = connection.read_frame()
            times.append(time.perf_counter() - begin)
        answer = decode_response(payload, MetadataResponse)
    partitions = sum(len(topic.partitions) for topic in answer.topics)
    median = sorted(times)[len(times) // 2]
    figures = f"first {times[0]:.3f} s, median {median:.4f} s, {len(payload):,} bytes"
    console.print(f"Metadata of {partitions:,} partitions: {figures}")


def report(console: Console, what: str, took_s: float) -> None:
    console.print(f"{what}: {took_s:.2f} s")


def seconds(action) -> float:  # type: ignore[no-untyped-def]
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
