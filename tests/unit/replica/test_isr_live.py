"""Who is in sync, asked of the controller by hosts in one process, and what that means for writers."""

import asyncio

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AlterPartition
from ottla.metadata.model.records import partition_change_record
from support.logs import make_batch
from support.replica_hosts import SHORT_LAG, HostFleet, assert_equal, run, until

LONG_LAG = {"replica_lag_time_max_ms": "3600000"}  # nothing is found by the periodic check


def test_a_follower_that_stays_away_leaves_the_in_sync_set_and_comes_back(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2))
        fleet.write(0, 3)
        await fleet.same()
        await fleet.leave(2)
        last = fleet.write(0, 3)
        commit = fleet.partition(0).committed(last)
        assert commit is not None and not commit.done()
        await asyncio.wait_for(commit, 10)
        assert fleet.state("orders").isr == (0, 1)
        await fleet.join(2)
        await until(lambda: set(fleet.state("orders").isr) == {0, 1, 2})
        await fleet.same()
        assert_equal(fleet, 0, 1, 2)

    run(test, tmp_path, **SHORT_LAG)


def test_a_fenced_broker_joins_only_with_its_new_epoch(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.fence(1)
        fleet.apply(partition_change_record(fleet.image.topics["orders"].id, 0, isr=(0,)))
        fleet.write(0, 3)
        await until(lambda: fleet.partition(1).log.end_offset == 9)
        assert fleet.state("orders").isr == (0,)
        fleet.register(1)
        await until(lambda: set(fleet.state("orders").isr) == {0, 1})
        epoch = fleet.image.brokers[1].epoch
        changes = [change for asked in fleet.asked if isinstance(asked, AlterPartition) for change in asked.partitions]
        assert dict(changes[-1].isr)[1] == epoch

    run(test, tmp_path)


def test_below_min_insync_replicas_nothing_is_taken_or_committed(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1), min_insync_replicas="2")
        fleet.write(0, 3)
        await fleet.same()
        await fleet.leave(1)
        last = fleet.write(0, 1)
        commit = fleet.partition(0).committed(last)
        await until(lambda: fleet.state("orders").isr == (0,))
        await fleet.settled()
        assert commit is not None and not commit.done()
        assert fleet.partition(0).high_watermark == 9
        with pytest.raises(KafkaError) as refusal:
            fleet.write(0, 1)
        assert refusal.value.code == Code.not_enough_replicas
        fleet.partition(0).append(make_batch(1, timestamp=-1), acks_all=False)
        assert fleet.partition(0).high_watermark == 9
        await fleet.join(1)
        await asyncio.wait_for(commit, 10)
        assert await fleet.same() == 13

    run(test, tmp_path, **SHORT_LAG)


def test_while_a_change_is_under_way_the_larger_set_counts(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 1)
        await fleet.same()
        may_decide = asyncio.Event()

        async def hold(command: object) -> None:
            await may_decide.wait()

        fleet.controlled = hold
        await fleet.leave(1)
        commit = fleet.partition(0).committed(fleet.write(0, 1))
        await until(lambda: any(isinstance(asked, AlterPartition) for asked in fleet.asked))
        assert fleet.partition(0).view.pending == {0}
        assert not commit.done() and fleet.partition(0).high_watermark == 3
        may_decide.set()
        await asyncio.wait_for(commit, 10)

    run(test, tmp_path, **SHORT_LAG)


def test_who_catches_up_while_a_change_is_under_way_joins_right_after_it(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2))
        for broker in (1, 2):
            fleet.fence(broker)
        fleet.apply(partition_change_record(fleet.image.topics["orders"].id, 0, isr=(0,)))
        fleet.write(0, 1)
        await until(lambda: {fleet.partition(broker).log.end_offset for broker in (1, 2)} == {3})
        may_decide = asyncio.Event()

        async def hold(command: object) -> None:
            await may_decide.wait()

        fleet.controlled = hold
        fleet.register(1)
        await until(lambda: fleet.partition(0).view.pending == {0, 1})
        fleet.register(2)
        await until(lambda: fleet.partition(0).view.follower(2).broker_epoch == fleet.image.brokers[2].epoch)
        may_decide.set()
        await until(lambda: set(fleet.state("orders").isr) == {0, 1, 2})

    run(test, tmp_path, **LONG_LAG)


def test_a_set_that_was_refused_is_asked_for_again(tmp_path):
    """Nothing else would make the leader check: the follower has everything and is silent."""

    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.fence(1)
        fleet.apply(partition_change_record(fleet.image.topics["orders"].id, 0, isr=(0,)))
        refused: list[object] = []

        async def fence_first(command: object) -> None:
            if isinstance(command, AlterPartition) and not refused:
                refused.append(command)
                fleet.fence(1)

        fleet.controlled = fence_first
        fleet.register(1)
        await until(lambda: refused and fleet.partition(0).view.pending is None)
        fleet.register(1)
        await until(lambda: set(fleet.state("orders").isr) == {0, 1})

    run(test, tmp_path, **LONG_LAG)


def test_a_controller_that_cannot_answer_is_asked_again(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        await fleet.leave(1)
        fleet.write(0, 1)
        refusals = [KafkaError(Code.not_controller), KafkaError(Code.request_timed_out), RuntimeError("broken")]

        async def refuse(command: object) -> None:
            if refusals:
                raise refusals.pop()

        fleet.controlled = refuse
        await until(lambda: fleet.state("orders").isr == (0,))
        await until(lambda: fleet.partition(0).high_watermark == 3)

    run(test, tmp_path, **SHORT_LAG)
