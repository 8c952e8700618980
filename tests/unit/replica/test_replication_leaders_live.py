"""Leaders that change: what was committed stays, what was not is cut off, on hosts in one process."""

import asyncio

from ottla.replica.nearest import nearest
from support.logs import make_batch
from support.replica_hosts import HostFleet, assert_equal, leave_alone, run, until


def test_an_old_leader_gives_up_what_was_never_committed(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2))
        fleet.write(0, 10)
        await fleet.same()
        fleet.fence(0)
        leave_alone(fleet, 0)
        fleet.partition(0).log.append(make_batch(5, producer=(8, 0, 0)), leader_epoch=0)
        await fleet.elect("orders", 0, 1, isr=(1, 2))
        fleet.write(1, 4)
        assert await fleet.same() == 42
        assert_equal(fleet, 0, 1, 2)
        epochs = [fleet.partition(each).log.epochs.entries for each in (0, 1, 2)]
        assert epochs == [((0, 0), (1, 30))] * 3
        assert 8 not in fleet.partition(0).log.producers.by_id
        fleet.fence(0, fenced=False)
        await until(lambda: set(fleet.state("orders").isr) == {0, 1, 2})

    run(test, tmp_path)


def test_leaders_change_back_and_forth_under_writes(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2))
        committed = []
        for turn in range(9):
            leader = turn % 3
            await fleet.elect("orders", 0, leader)
            last = fleet.write(leader, 3)
            await asyncio.wait_for(fleet.partition(leader).committed(last) or asyncio.sleep(0), 10)
            committed.append(last)
            fleet.write(leader, 1)  # may be lost
        await fleet.same()
        assert_equal(fleet, 0, 1, 2)
        assert all(fleet.partition(each).log.end_offset > committed[-1] for each in (0, 1, 2))
        assert len(fleet.partition(0).log.epochs.entries) == 9

    run(test, tmp_path)


def test_an_epoch_without_records_does_not_confuse_the_next_leader(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 2)
        await fleet.same()
        await fleet.elect("orders", 0, 1)
        await fleet.elect("orders", 0, 0)
        fleet.write(0, 2)
        assert await fleet.same() == 12
        assert fleet.partition(1).log.epochs.entries == ((0, 0), (2, 6))

    run(test, tmp_path)


def test_a_new_leader_does_not_know_what_is_committed_at_once(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 2)
        await fleet.same()
        await fleet.leave(0)
        fleet.partition(1).log.append(make_batch(3), leader_epoch=0)
        await fleet.elect("orders", 0, 1)
        view = fleet.partition(1).view
        assert view is not None and not view.is_settled
        await fleet.join(0)
        await until(lambda: view.is_settled)
        assert await fleet.same() == 9

    run(test, tmp_path)


def test_a_consumer_is_sent_to_the_follower_in_its_rack(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2, racks={0: "a", 1: "b", 2: "b"})
        await fleet.create("orders", (0, 1, 2))
        fleet.write(0, 2)
        await fleet.same()

        def choice(rack: str, offset: int = 0) -> int:
            return nearest(fleet.partition(0), offset=offset, rack=rack, image=fleet.brokers[0].host.image)

        chosen = choice("b")
        assert chosen in (1, 2)
        assert [choice("a"), choice("c"), choice("b", offset=99)] == [-1, -1, -1]
        fleet.fence(chosen)
        await fleet.settled()
        assert choice("b") == 3 - chosen

    run(test, tmp_path)
