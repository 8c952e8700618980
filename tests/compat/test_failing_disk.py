"""Two log dirs, one on a small disk of its own: when that is full, its partitions go offline and nothing else does."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.java import java_tool
from support.librdkafka import Sent, make_topic, read, send
from support.process import BrokerProcess

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")


def test_a_full_disk_takes_only_its_own_partitions_offline(
    make_broker: Callable[..., BrokerProcess], small_disk: Path, tmp_path: Path
) -> None:
    large_disk = tmp_path / "large"
    broker = make_broker(**{"log.dirs": f"{large_disk},{small_disk}", "metadata.log.dir": str(large_disk)})
    broker.start()
    make_topic(broker.bootstrap, "t", partitions=2)
    small = int(next(entry.name for entry in small_disk.iterdir() if entry.name.startswith("t-"))[2:])
    large = 1 - small
    filling = send(
        broker.bootstrap,
        "t",
        [Sent(bytes(500_000), partition=small) for _ in range(30)],
        acks="all",
        message_timeout_ms=3000,
    )
    assert filling.errors, "15 MB cannot fit on 8 MB"
    assert filling.offsets, "the first ones fit"
    assert not send(broker.bootstrap, "t", [Sent(b"still here", partition=large)]).errors
    assert [message.value() for message in read(broker.bootstrap, "t", large)] == [b"still here"]
    report = java_tool("org.apache.kafka.tools.LogDirsCommand", "--bootstrap-server", broker.bootstrap, "--describe")
    assert "KafkaStorageException" in report.out
    assert f"{large_disk}" in report.out
    broker.stop()
