"""A log dir fails under a broker that goes on: the controller hears of it and lets others lead."""

from pathlib import Path
from typing import Any

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AlterPartition, Command, ReplicasLost
from support.replica_hosts import HostFleet, run, until


def fail_disk(fleet: HostFleet, broker_id: int) -> None:
    directories = fleet.brokers[broker_id].directories
    directories.fail(directories.online[0], OSError(5, "Input/output error"))


def test_the_controller_is_told_until_it_understands_and_others_lead(tmp_path: Path) -> None:
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2), (1, 0, 2))
        fleet.write(0)
        await fleet.same()
        refusals = 0

        async def away(command: Command[Any]) -> None:
            nonlocal refusals
            if isinstance(command, ReplicasLost) and refusals < 3:
                refusals += 1
                raise KafkaError(Code.request_timed_out, "nobody leads")

        fleet.controlled = away
        fail_disk(fleet, 0)
        await until(lambda: fleet.state("orders").leader == 1)
        assert refusals == 3
        assert fleet.state("orders").isr == (1, 2)
        await until(lambda: fleet.state("orders", 1).isr == (1, 2))
        assert fleet.state("orders", 1).leader == 1
        await fleet.settled()
        for index in (0, 1):
            end = fleet.write(1, index=index) + 1
            await until(lambda i=index, end=end: fleet.partition(2, index=i).high_watermark == end, "committed")
        asked = [each for command in fleet.asked if isinstance(command, AlterPartition) for each in command.partitions]
        assert not any(broker == 0 for change in asked for broker, _ in change.isr), "it need not be asked to join"

    run(test, tmp_path)


def test_a_lost_replica_is_not_created_again_while_its_broker_lives_but_after_it_moved_away_and_back(
    tmp_path: Path,
) -> None:
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fail_disk(fleet, 0)
        await until(lambda: fleet.state("orders").leader == 1)
        await fleet.settled()
        host = fleet.brokers[0].host
        assert host.find("orders", 0) is None
        assert host.offline
        reports = sum(isinstance(command, ReplicasLost) for command in fleet.asked)
        await fleet.elect("orders", 0, 1)
        assert host.find("orders", 0) is None
        assert sum(isinstance(command, ReplicasLost) for command in fleet.asked) == reports == 1

    run(test, tmp_path)


def test_a_broker_that_registers_again_reports_it_again(tmp_path: Path) -> None:
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fail_disk(fleet, 0)
        await until(lambda: fleet.state("orders").lost == (0,))
        epoch = fleet.image.brokers[0].epoch
        fleet.register(0)
        state = fleet.state("orders")
        fleet.place("orders", 0, [state.directories[1]] * 2)  # what a registration does
        assert not fleet.state("orders").lost
        await until(lambda: fleet.state("orders").lost == (0,))
        (*_, last) = (command for command in fleet.asked if isinstance(command, ReplicasLost))
        assert last.broker_epoch == fleet.image.brokers[0].epoch != epoch

    run(test, tmp_path)


def test_a_log_that_leaves_while_a_thread_flushes_it_is_no_failure_of_its_disk(tmp_path: Path) -> None:
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        await fleet.create("other", (0, 1))
        fleet.write(0)
        partition = fleet.partition(0)
        partition.log.roll()
        await fleet.brokers[0].host._remove(partition)
        await partition.flush_sealed()  # as an upkeep does that had begun before
        assert len(fleet.brokers[0].directories.online) == 1
        assert fleet.brokers[0].host.find("other", 0) is not None

    run(test, tmp_path)
