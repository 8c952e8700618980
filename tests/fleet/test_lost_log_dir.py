"""One of two log dirs of a broker in a fleet is full: others lead its partitions at once, the broker stays up."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fleet import FleetOf
from support.librdkafka import Sent, make_topic, read, send
from support.waiting import eventually

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")

VICTIM = 0
PARTITIONS = 6


def test_others_lead_what_a_full_log_dir_took(make_fleet: Callable[..., FleetOf], small_disk: Path, name: str) -> None:
    fleet = make_fleet()
    victim = fleet.members[VICTIM]
    if fleet.peer != "ottla":
        pytest.skip("how Kafka's settings are written is another matter")
    own = str(victim.data_dir)
    victim.settings.update({"log.dirs": f"{own},{small_disk}", "metadata.log.dir": own})
    fleet.start()
    make_topic(fleet.bootstrap, name, partitions=PARTITIONS, replicas=3, min_insync_replicas="2")
    fleet.wait_in_sync()
    there = sorted(int(each.name.rpartition("-")[2]) for each in small_disk.iterdir() if each.name.startswith(name))
    led = next(index for index in there if fleet.leader_of(name, index) == VICTIM)
    filling = send(fleet.bootstrap, name, [Sent(bytes(500_000), partition=led) for _ in range(30)])
    assert not filling.errors, "the other two go on without the one whose disk is full"
    assert fleet.leader_of(name, led) != VICTIM
    eventually(lambda: [in_sync_of(fleet, name, index) for index in there], lambda seen: seen == [{1, 2}] * len(there))
    here = [index for index in range(PARTITIONS) if index not in there]
    assert here, "logs are spread over both dirs"
    assert all(in_sync_of(fleet, name, index) == {0, 1, 2} for index in here)
    assert any(fleet.leader_of(name, index) == VICTIM for index in here), "it leads the rest as before"
    for index in range(PARTITIONS):
        assert not send(fleet.bootstrap, name, [Sent(b"after", partition=index)]).errors
        assert read(fleet.bootstrap, name, index)[-1].value() == b"after"
    assert victim.running
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    victim.restart()
    fleet.wait_in_sync()
    fleet.stop()


def in_sync_of(fleet: FleetOf, name: str, index: int) -> set[int]:
    seen = fleet.partition(name, index)
    return set(seen.in_sync) if seen is not None else set()
