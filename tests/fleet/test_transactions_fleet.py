"""Transactions in a fleet: markers and questions between brokers, and brokers that die at any moment."""

import subprocess
import time
from collections import Counter

import pytest
from support.fleet import FleetOf
from support.java import java_command, java_tool
from support.librdkafka import Sent, make_topic, send
from support.steady_transactions import SteadyTransactions
from support.transactions import producer, read_all, transact
from support.waiting import eventually

FLEET_SETTINGS = {
    "transaction.state.log.num.partitions": "6",
    "offsets.topic.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}
PARTITIONS = 6
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"


def test_partitions_of_all_brokers_in_one_transaction(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=PARTITIONS, replicas=3)
    made = producer(fleet.bootstrap, name)
    for number in range(6):
        transact(made, name, [f"{number}"] * 12, partitions=PARTITIONS, commit=number % 2 == 0)
    seen = Counter(read_all(fleet.bootstrap, name, partitions=PARTITIONS))
    assert seen == {"0": 12, "2": 12, "4": 12}


def test_find_hanging_asks_a_broker_for_all_its_replicas(fleet: FleetOf, name: str) -> None:
    """Also those that it only follows."""
    make_topic(fleet.bootstrap, name, partitions=PARTITIONS, replicas=3)
    transact(producer(fleet.bootstrap, name), name, ["a"] * PARTITIONS, partitions=PARTITIONS)
    found = java_tool(TRANSACTIONS, "--bootstrap-server", fleet.bootstrap, "find-hanging", "--broker-id", "1")
    assert name not in found.out and "Failed" not in found.text


@pytest.mark.parametrize("rounds", [3])
def test_nothing_torn_when_brokers_are_killed(fleet: FleetOf, name: str, rounds: int) -> None:
    """The victims lead partitions and coordinate transactions; producers go on throughout."""
    make_topic(fleet.bootstrap, name, partitions=PARTITIONS, replicas=3, min_insync_replicas="2")
    fleet.wait_in_sync()
    running = [
        SteadyTransactions(fleet.bootstrap, name, f"{name}-{number}", partitions=PARTITIONS) for number in range(3)
    ]
    for number in range(rounds):
        progress(running)
        victim = number % len(fleet.members)
        fleet.members[victim].kill()
        progress(running)
        fleet.members[victim].start()
        fleet.wait_in_sync()
    progress(running)
    for one in running:
        one.finish()
    settle(fleet, name)
    seen = Counter(read_all(fleet.bootstrap, name, partitions=PARTITIONS))
    for one in running:
        one.check(seen)
    print(f"{sum(len(one.committed) for one in running)} committed, {sum(len(one.aborted) for one in running)} aborted")


def progress(running: list[SteadyTransactions], count: int = 10) -> None:
    """Every producer ends some more transactions."""
    before = [one.ended for one in running]
    eventually(
        lambda: [one.ended - seen for one, seen in zip(running, before, strict=True)],
        lambda grown: min(grown) >= count,
        timeout_s=90,
    )


def settle(fleet: FleetOf, topic: str) -> None:
    """Until what producers left open has timed out: then all that was written is stable."""

    def stable() -> bool:
        committed = len(read_all(fleet.bootstrap, topic, partitions=PARTITIONS))
        time.sleep(0.5)
        return committed == len(read_all(fleet.bootstrap, topic, partitions=PARTITIONS))

    probe = producer(fleet.bootstrap, f"{topic}-probe")
    transact(probe, topic, ["probe"] * PARTITIONS, partitions=PARTITIONS)
    eventually(
        lambda: Counter(read_all(fleet.bootstrap, topic, partitions=PARTITIONS))["probe"],
        lambda count: count == PARTITIONS,
        timeout_s=90,
    )
    assert stable()


def test_java_copies_exactly_while_brokers_are_killed(fleet: FleetOf, name: str) -> None:
    """Consume, transform, produce with offsets in the transaction, in the flow of KIP-890."""
    count = 3000
    make_topic(fleet.bootstrap, f"{name}-in", partitions=1, replicas=3, min_insync_replicas="2")
    make_topic(fleet.bootstrap, f"{name}-out", partitions=1, replicas=3, min_insync_replicas="2")
    values = [f"v{i}" for i in range(count)]
    send(fleet.bootstrap, f"{name}-in", [Sent(value.encode()) for value in values])
    command = java_command(
        COPIER,
        *("--broker-list", fleet.bootstrap, "--input-topic", f"{name}-in", "--input-partition", "0"),
        *("--output-topic", f"{name}-out", "--transactional-id", name, "--consumer-group", f"{name}-group"),
        *("--transaction-size", "10", "--transaction-timeout", "15000", "--group-mode", "--use-group-metadata"),
    )
    copier = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for victim in (0, 1, 2):
            wait_for_more(fleet, name, copier)
            fleet.members[victim].kill()
            fleet.members[victim].start()
            fleet.wait_in_sync()
        out, _ = copier.communicate(timeout=180)
    finally:
        copier.kill()
    assert '"remaining":0' in out.replace(" ", "").splitlines()[-1], out[-2000:]
    assert read_all(fleet.bootstrap, f"{name}-out") == values


def copied(fleet: FleetOf, name: str) -> int:
    return len(read_all(fleet.bootstrap, f"{name}-out"))


def wait_for_more(fleet: FleetOf, name: str, copier: "subprocess.Popen[str]") -> None:
    before = copied(fleet, name)
    eventually(lambda: copied(fleet, name), lambda seen: seen > before or copier.poll() is not None, timeout_s=60)
