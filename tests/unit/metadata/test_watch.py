"""The controller's watch over its brokers, with a clock that the test moves."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import Context, CreateTopics, FenceBroker, NewTopic, RegisterBroker
from ottla.metadata.decisions.features import SUPPORTED_FEATURES
from ottla.metadata.model.changes import Changes, compare
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.active import ActiveController
from ottla.metadata.runtime.feed import MetadataMachine
from ottla.metadata.runtime.watch import SUSPICION_S, BrokerWatch, Heartbeat
from ottla.raft.core.messages import Member, Voter
from ottla.raft.core.raft import RaftConfig
from ottla.raft.driver import RaftDriver
from ottla.raft.store import RaftStore
from ottla.system import System

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
SESSION_S = 3.0
# The watch takes a longer step of the clock for a hang of its own process.
STEP_S = 0.2


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return round(self.now * 1000)


class Fleet:
    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        system = System(clock=self.clock)
        self.feed = MetadataMachine(CLUSTER)
        self.driver = RaftDriver(
            RaftConfig(member=Member(9, uuid.UUID(int=9))),
            store=RaftStore(system.disk, str(folder)),
            system=system,
            machine=self.feed,
            seed=(Voter(9),),
        )
        self.controller = ActiveController(
            feed=self.feed, driver=self.driver, system=system, node_id=9, context=self._context
        )
        self.watch = BrokerWatch(controller=self.controller, feed=self.feed, system=system, session_timeout_s=SESSION_S)
        self.epochs: dict[int, int] = {}

    def _context(self, **facts: object) -> Context:
        return Context(live_brokers=self.watch.alive, **facts)  # type: ignore[arg-type]

    async def register(self, broker: int) -> None:
        directory = uuid.uuid4()
        command = RegisterBroker(broker, uuid.uuid4(), CLUSTER, [], log_dirs=[directory], features=SUPPORTED_FEATURES)
        self.epochs[broker] = await self.controller.submit(command)

    async def beat(
        self,
        broker: int,
        *,
        ready: bool = True,
        leaving: bool = False,
        version: int | None = None,
        stuck_s: float = 0.0,
    ) -> bool:
        """Whether the broker may shut down."""
        beat = Heartbeat(
            broker=broker,
            epoch=self.epochs[broker],
            version=self.feed.image.version if version is None else version,
            ready=ready,
            wants_shutdown=leaving,
            pulse_age_ms=round(stuck_s * 1000),
        )
        return (await self.watch.heartbeat(beat)).may_shut_down

    async def pass_time(self, seconds: float, *, beating: tuple[int, ...], stuck: tuple[int, ...] = ()) -> None:
        """Heartbeats also make the watch read the clock. The data loops of the `stuck` do not turn meanwhile."""
        begin = self.clock.now
        while self.clock.now < begin + seconds:
            self.clock.now += STEP_S
            for broker in beating:
                await self.beat(broker)
            for broker in stuck:
                await self.beat(broker, stuck_s=self.clock.now - begin)
            await asyncio.sleep(0.001)

    def is_fenced(self, broker: int) -> bool:
        return self.feed.image.brokers[broker].fenced

    async def until_fenced(self, broker: int) -> None:
        while not self.is_fenced(broker):  # noqa: ASYNC110 (the image has no event)
            await asyncio.sleep(0.001)


def run(folder: Path, scene: Callable[[Fleet], Awaitable[None]]) -> None:
    async def whole() -> None:
        fleet = Fleet(folder)
        await fleet.driver.start()
        await fleet.driver.until_leader_known()
        fleet.watch.start()
        for broker in (1, 2, 3):
            await fleet.register(broker)
            await fleet.beat(broker)
        async with asyncio.timeout(30):
            await scene(fleet)
        await fleet.watch.stop()
        await fleet.driver.stop()

    asyncio.run(whole())


def test_a_broker_is_unfenced_when_it_is_ready_and_has_caught_up(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        await fleet.register(4)
        await fleet.beat(4, ready=False)
        assert fleet.is_fenced(4)
        await fleet.beat(4, version=fleet.epochs[4] - 1)
        assert fleet.is_fenced(4)
        await fleet.beat(4)
        assert not fleet.is_fenced(4)

    run(tmp_path, scene)


def test_a_silent_broker_is_fenced_and_comes_back_with_a_heartbeat(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        await fleet.controller.submit(CreateTopics([NewTopic("t", 3, 3)]))
        await fleet.pass_time(SESSION_S - 2 * STEP_S, beating=(1, 2))
        assert not fleet.is_fenced(3)
        await fleet.pass_time(3 * STEP_S, beating=(1, 2))
        await fleet.until_fenced(3)
        assert not fleet.is_fenced(1) and not fleet.is_fenced(2)
        assert all(state.leader in (1, 2) for state in fleet.feed.image.topics["t"].partitions)
        await fleet.beat(3)
        assert not fleet.is_fenced(3)

    run(tmp_path, scene)


def test_a_broker_whose_process_ended_is_fenced_at_once(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        fleet.watch.process_gone(3)
        await fleet.pass_time(SUSPICION_S + 2 * STEP_S, beating=(1, 2))
        await fleet.until_fenced(3)

    run(tmp_path, scene)


def test_a_rumour_about_a_broker_that_goes_on_beating_is_ignored(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        fleet.watch.process_gone(3)
        await fleet.pass_time(2 * SUSPICION_S, beating=(1, 2, 3))
        assert not fleet.is_fenced(3)

    run(tmp_path, scene)


class Follower:
    """A node that does not lead, and what its watch hears. `elect` makes it the controller; what it fences is kept."""

    def __init__(self, image: Image) -> None:
        self.image, self.is_active = image, False
        self.clock = Clock()
        self.fenced: list[int] = []
        self.watch = BrokerWatch(
            controller=self,  # type: ignore[arg-type]
            feed=self,  # type: ignore[arg-type]
            system=System(clock=self.clock),
            session_timeout_s=SESSION_S,
        )

    def on_leadership(self, hear: Callable[[bool], None]) -> None:
        self._hear_leadership = hear

    def subscribe(self, hear: Callable[[Image, Image, Changes], None]) -> None:
        self._hear_image = hear

    async def submit(self, command: FenceBroker) -> None:
        self.fenced.append(command.id)

    def move(self, new: Image) -> None:
        old, self.image = self.image, new
        self._hear_image(old, new, compare(old, new))

    async def elect(self) -> None:
        """And wait for longer than a suspicion lasts."""
        self.is_active = True
        self._hear_leadership(True)
        self.watch.start()
        for _ in range(10):
            self.clock.now += SUSPICION_S / 5
            self.watch.process_gone(99)  # makes it read the clock
            await asyncio.sleep(0.001)
        await self.watch.stop()


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_broker_that_came_back_before_the_election_is_not_taken_for_gone(tmp_path: Path, comes_back: bool) -> None:
    """In a roll the new controller fenced a broker that had been restarted a second ago."""

    async def scene(fleet: Fleet) -> None:
        for broker in (1, 2, 3):
            await fleet.beat(broker)
        follower = Follower(fleet.feed.image)
        follower.watch.process_gone(2)
        if comes_back:
            await fleet.beat(2, leaving=True, version=10**9)
            await fleet.register(2)
            await fleet.beat(2)
            follower.move(fleet.feed.image)
        await follower.elect()
        assert (2 in follower.fenced) is not comes_back

    run(tmp_path, scene)


def test_nobody_is_fenced_for_what_a_frozen_controller_missed(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        fleet.clock.now += 10 * SESSION_S
        await fleet.beat(1)
        await asyncio.sleep(0.05)
        assert not any(fleet.is_fenced(broker) for broker in (1, 2, 3))

    run(tmp_path, scene)


def test_a_leaving_broker_waits_until_the_others_know(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        await fleet.controller.submit(CreateTopics([NewTopic("t", 3, 3)]))
        assert not await fleet.beat(1, leaving=True)
        assert all(state.leader in (2, 3) for state in fleet.feed.image.topics["t"].partitions)
        assert fleet.feed.image.brokers[1].in_controlled_shutdown and not fleet.is_fenced(1)
        await fleet.beat(2)
        assert not await fleet.beat(1, leaving=True)
        await fleet.beat(3)
        assert await fleet.beat(1, leaving=True)
        assert fleet.is_fenced(1)
        await fleet.register(1)

    run(tmp_path, scene)


def test_an_id_is_taken_while_its_session_lives(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        with pytest.raises(KafkaError) as refused:
            await fleet.register(3)
        assert refused.value.code is Code.duplicate_broker_registration
        await fleet.pass_time(SESSION_S + 2 * STEP_S, beating=(1, 2))
        await fleet.until_fenced(3)
        await fleet.register(3)

    run(tmp_path, scene)


def test_a_broker_of_an_earlier_life_must_register_again(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        fleet.epochs[2] -= 1
        with pytest.raises(KafkaError) as refused:
            await fleet.beat(2)
        assert refused.value.code is Code.stale_broker_epoch

    run(tmp_path, scene)


def test_a_broker_whose_data_path_is_stuck_is_fenced_within_one_session_and_comes_back(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        await fleet.pass_time(SESSION_S - 2 * STEP_S, beating=(1, 3), stuck=(2,))
        assert not fleet.is_fenced(2)
        await fleet.beat(2, stuck_s=SESSION_S)
        await fleet.until_fenced(2)
        for _ in range(3):
            await fleet.beat(2, stuck_s=SESSION_S + 1)
            await asyncio.sleep(0.001)
            assert fleet.is_fenced(2)
            assert 2 not in fleet.watch.alive
        await fleet.beat(2)
        assert not fleet.is_fenced(2)
        assert 2 in fleet.watch.alive
        assert not fleet.is_fenced(1) and not fleet.is_fenced(3)

    run(tmp_path, scene)


def test_a_data_path_that_paused_for_less_than_a_session_is_forgiven(tmp_path: Path) -> None:
    async def scene(fleet: Fleet) -> None:
        await fleet.pass_time(SESSION_S - 2 * STEP_S, beating=(1, 3), stuck=(2,))
        await fleet.pass_time(SESSION_S, beating=(1, 2, 3))
        assert not fleet.is_fenced(2)

    run(tmp_path, scene)
