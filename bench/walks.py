"""How long a request's way through the code is: `python -m bench.walks [--code FOLDER]`, calls of Python and files.

Three brokers with a profiler that counts calls, acks=all produces of one record at a time, and members that join
classic groups of their own. What is called at least every second time counts; what happens anyway (heartbeats,
timers) does not. `--code` names a folder with another version's package `ottla`; `--functions` lists what was called.
"""

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Producer
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from rich.console import Console
from rich.table import Table
from support.fleet import FleetOf
from support.frames import Connection
from support.librdkafka import make_topic
from support.ottla_broker import OttlaBroker
from support.process import BrokerProcess
from support.waiting import eventually

COUNTER = Path(__file__).parent / "calls"
RECORDS, JOINS = 1000, 40
OFTEN = 0.5  # per record or join
TOPIC = "walked"
Calls = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.walks", description=__doc__)
    parser.add_argument("--code", type=Path, help="a folder with the package ottla; this tree's by default")
    parser.add_argument("--functions", action="store_true", help="list every function with its calls")
    options = parser.parse_args()
    code = options.code or Path(__file__).parents[1] / "broker"
    with tempfile.TemporaryDirectory(prefix="walks-") as folder, closing(counted_fleet(Path(folder), code)) as fleet:
        walks = {**produce(fleet, Path(folder)), **join(fleet, Path(folder))}
    table = Table("walk", "calls", "functions", "files", title=f"ways through {code}", title_justify="left")
    for name, calls in walks.items():
        files = {function.partition(":")[0] for function in calls}
        table.add_row(name, f"{sum(calls.values()):.0f}", str(len(calls)), str(len(files)))
        if options.functions:
            print(name, *(f"{count:6.1f} {what}" for what, count in sorted(calls.items())), sep="\n  ")
    Console().print(table)


def counted_fleet(folder: Path, code: Path) -> FleetOf:
    os.environ |= {"COUNT_CALLS_FOLDER": str(folder), "COUNT_CALLS_PACKAGE": "ottla"}
    settings = {"offsets.topic.num.partitions": "1"}
    fleet = FleetOf("ottla", folder, settings=settings)
    for member in fleet.members:
        assert isinstance(member, OttlaBroker)
        member.use_code(Path(f"{code}:{COUNTER}"))
    fleet.start()
    return fleet


def produce(fleet: FleetOf, folder: Path) -> dict[str, Calls]:
    make_topic(fleet.bootstrap, TOPIC, partitions=1, replicas=3)
    producer = Producer({"bootstrap.servers": fleet.bootstrap, "acks": "all", "linger.ms": 0})

    def send(count: int) -> None:
        for _ in range(count):
            producer.produce(TOPIC, b"x" * 1000, partition=0)
            assert producer.flush(30) == 0

    send(100)
    by_member = per_time(fleet, folder, send, RECORDS)
    leader = max(by_member, key=lambda calls: sum(count for what, count in calls.items() if "k00_produce" in what))
    followers = [calls for calls in by_member if calls is not leader]
    return {"produce, acks=all: leader": leader, "produce, acks=all: a follower": followers[0]}


def join(fleet: FleetOf, folder: Path) -> dict[str, Calls]:
    """Three requests on one connection, as a client sends them: without an id, with it, and SyncGroup."""
    port = coordinator_port(fleet)
    joined = 0
    with Connection(port) as connection:

        def come(count: int) -> None:
            nonlocal joined
            for _ in range(count):
                joined += 1
                join_one(connection, f"group-{joined}")

        come(2)
        by_member = per_time(fleet, folder, come, JOINS)
    coordinator = by_member[[member.port for member in fleet.members].index(port)]
    return {"classic join, a member alone: coordinator": coordinator}


def coordinator_port(fleet: FleetOf) -> int:
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=("any",))
    with Connection(fleet.members[0].port) as connection:
        answer = eventually(
            lambda: connection.ask(asked, FindCoordinatorResponse).coordinators[0], lambda found: found.port > 0
        )
    return int(answer.port)


def join_one(connection: Connection, group: str) -> None:
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff"),)
    member_id, generation = "", -1
    while generation < 0:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout=timedelta(seconds=60),
            rebalance_timeout=timedelta(seconds=60),
            member_id=member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=protocols,
            reason=None,
        )
        answer = connection.ask(request, JoinGroupResponse)
        member_id, generation = answer.member_id, answer.generation_id
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine"),),
    )
    assert connection.ask(sync, SyncGroupResponse).assignment == b"mine"


def per_time(fleet: FleetOf, folder: Path, work: Callable[[int], None], times: int) -> list[Calls]:
    before = [calls_of(member, folder) for member in fleet.members]
    work(times)
    after = [calls_of(member, folder) for member in fleet.members]
    pairs = zip(before, after, strict=True)
    return [{what: n / times for what, n in (late - early).items() if n / times >= OFTEN} for early, late in pairs]


def calls_of(member: BrokerProcess, folder: Path) -> Counter[str]:
    """As of now or later: the next snapshot that was begun after this was asked."""
    asked, path = time.time(), folder / f"{member.pid}.json"
    eventually(lambda: path.exists() and json.loads(path.read_text())["at"] > asked, bool)
    return Counter(json.loads(path.read_text())["calls"])


if __name__ == "__main__":
    main()
