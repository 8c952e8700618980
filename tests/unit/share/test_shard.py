"""States in a real log: what a shard that is loaded anew knows, when answers leave, and what is pruned."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from ottla.coordination.loading import Loading
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.metadata.model.state import PartitionState
from ottla.replica.partition import Partition
from ottla.share.coordinator import SHARE_STATE_TOPIC
from ottla.share.core.messages import Delivery, ShareKey, ShareState, StateBatch, Summary
from ottla.share.shard import ShareShard
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.system import System

TOPIC = uuid.uuid4()
KEY, OTHER = ShareKey("g", TOPIC, 0), ShareKey("g", TOPIC, 1)
K = Delivery.ACKNOWLEDGED
UPDATES_PER_SNAPSHOT = 3
COLD_MS = 1000


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def wall_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


class Life:
    """One broker that leads, with a follower that confirms only when it is told to if `isr` has it."""

    def __init__(self, folder: Path, *, isr: tuple[int, ...] = (0,)) -> None:
        self.system, self.clock = System(), Clock()
        files = FileCache(self.system.disk, 16)
        log = Log.open(
            f"{folder}/{SHARE_STATE_TOPIC}-0", settings=LogSettings(), system=self.system, files=files, clean=False
        )
        self.partition = Partition(
            SHARE_STATE_TOPIC,
            0,
            log,
            topic_id=uuid.uuid4(),
            system=self.system,
            node_id=0,
            high_watermark=log.end_offset,
            on_disk_error=lambda *_: None,
            epoch_of=lambda _: 1,
        )
        state = PartitionState(index=0, replicas=isr, isr=isr, leader=0, leader_epoch=1, partition_epoch=0)
        self.partition.become(state, isr_size_min=1)
        self.shard = self.new_shard()
        self.shard.loaded()

    def new_shard(self) -> ShareShard:
        return ShareShard(
            self.partition,
            clock=self.clock,
            write_rules=WriteRules(commit_s_max=5.0),
            updates_per_snapshot=lambda: UPDATES_PER_SNAPSHOT,
        )

    async def reloaded(self) -> ShareShard:
        shard = self.new_shard()
        loading = Loading(shard, read_bytes_max=1 << 20)
        assert await loading.run() and not loading.skipped
        shard.loaded()
        return shard

    async def check_survives(self) -> None:
        again = await self.reloaded()
        assert again.states == self.shard.states
        assert again._snapshots == self.shard._snapshots

    def follower_has_all(self) -> None:
        log = self.partition.log
        self.partition.acked(1, end=log.end_offset, start=log.start_offset, broker_epoch=1)

    def close(self) -> None:
        self.shard.unload()
        self.partition.log.close(clean=False)


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., None]:
    def run(what: Callable[[Life], Awaitable[None]], **options: tuple[int, ...]) -> None:
        async def live() -> None:
            life = Life(tmp_path, **options)
            try:
                await what(life)
            finally:
                life.close()

        asyncio.run(live())

    return run


Play = Callable[..., None]


async def code_of(asked: Awaitable[object]) -> Code:
    try:
        await asked
    except KafkaError as error:
        return error.code
    return Code.none


def test_a_state_lives(play: Play) -> None:
    async def what(life: Life) -> None:
        shard = life.shard
        assert await shard.summary(KEY) == Summary() and await shard.read(KEY, leader_epoch=3) == ShareState()
        await shard.initialize(KEY, state_epoch=4, start=-1)
        assert await shard.read(KEY, leader_epoch=3) == ShareState(4, -1)
        await shard.write(KEY, state_epoch=4, leader_epoch=3, start=5, batches=[StateBatch(6, 7, K, 1)])
        assert await shard.read(KEY, leader_epoch=3) == ShareState(4, 5, (StateBatch(6, 7, K, 1),))
        assert await shard.summary(KEY) == Summary(4, 5, 3) and shard.count == 1
        await shard.delete(KEY)
        await shard.delete(KEY)
        assert await shard.summary(KEY) == Summary() and shard.count == 0
        await life.check_survives()

    play(what)


def test_one_who_was_replaced_and_does_not_know_it_tells_no_old_news(play: Play) -> None:
    async def what(life: Life) -> None:
        shard = life.shard
        begin = asyncio.ensure_future(shard.initialize(KEY, state_epoch=1, start=0))
        await asyncio.sleep(0.01)
        life.follower_has_all()
        await begin
        questions = [
            shard.initialize(KEY, state_epoch=1, start=0),
            shard.read(KEY, leader_epoch=0),
            shard.read(OTHER, leader_epoch=0),
            shard.write(KEY, state_epoch=2, leader_epoch=0, start=1, batches=[]),
            shard.write(OTHER, state_epoch=1, leader_epoch=0, start=1, batches=[]),
            shard.delete(OTHER),
        ]
        asked = [asyncio.ensure_future(code_of(question)) for question in questions]
        await asyncio.sleep(0.01)
        assert not any(one.done() for one in asked)
        life.follower_has_all()
        found = await asyncio.gather(*asked)
        assert found == [*[Code.none] * 3, Code.fenced_state_epoch, Code.group_id_not_found, Code.none]

    play(what, isr=(0, 1))


def test_who_was_replaced_is_refused(play: Play) -> None:
    async def what(life: Life) -> None:
        shard = life.shard
        change = {"start": -1, "batches": [StateBatch(0, 1, K, 1)]}
        write = shard.write
        assert await code_of(write(KEY, state_epoch=0, leader_epoch=1, **change)) is Code.group_id_not_found
        await shard.initialize(KEY, state_epoch=2, start=0)
        await shard.read(KEY, leader_epoch=7)
        assert await code_of(write(KEY, state_epoch=2, leader_epoch=6, **change)) is Code.fenced_leader_epoch
        assert await code_of(write(KEY, state_epoch=1, leader_epoch=7, **change)) is Code.fenced_state_epoch
        assert await code_of(shard.read(KEY, leader_epoch=6)) is Code.fenced_leader_epoch
        assert await code_of(shard.initialize(KEY, state_epoch=1, start=0)) is Code.fenced_state_epoch
        shard = await life.reloaded()
        assert await code_of(shard.read(KEY, leader_epoch=6)) is Code.fenced_leader_epoch, "not after a restart either"
        assert shard.states[KEY].batches == ()

    play(what)


def test_asking_twice_to_begin_takes_nothing_back(play: Play) -> None:
    async def what(life: Life) -> None:
        await life.shard.initialize(KEY, state_epoch=1, start=0)
        await life.shard.write(KEY, state_epoch=1, leader_epoch=1, start=3, batches=[])
        await life.shard.initialize(KEY, state_epoch=1, start=0)
        assert await life.shard.read(KEY, leader_epoch=1) == ShareState(1, 3)
        await life.shard.initialize(KEY, state_epoch=2, start=0)
        assert await life.shard.read(KEY, leader_epoch=1) == ShareState(2, 0)

    play(what)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_a_reload_finds_it(play: Play, seed: int) -> None:
    random = Random(seed)
    keys = [ShareKey(f"g{number}", TOPIC, 0) for number in range(4)]

    async def step(life: Life, epochs: dict[ShareKey, int]) -> None:
        shard, key = life.shard, random.choice(keys)
        life.clock.ms += random.randint(0, 300)
        kept, deed = shard.states.get(key), random.random()
        if kept is None or deed < 0.05:
            epochs[key] = epochs.get(key, 0) + 1
            await shard.initialize(key, state_epoch=epochs[key], start=random.randint(-1, 10))
        elif deed < 0.1:
            await shard.read(key, leader_epoch=kept.leader_epoch + random.randint(0, 1))
        elif deed < 0.15:
            await shard.delete(key)
        elif deed < 0.2:
            await shard.snapshot_cold(now_ms=life.clock.ms, age_ms=COLD_MS)
        elif deed < 0.3:
            await shard.prune()
        else:
            first = random.randint(0, 50)
            batch = StateBatch(first, first + random.randint(0, 5), random.choice((0, 2, 4)), random.randint(1, 3))
            start = random.choice((-1, kept.start, kept.start + 2))
            await shard.write(
                key, state_epoch=kept.state_epoch, leader_epoch=kept.leader_epoch, start=start, batches=[batch]
            )

    async def what(life: Life) -> None:
        epochs: dict[ShareKey, int] = {}
        for _ in range(150):
            await step(life, epochs)
            await life.check_survives()
        assert life.partition.log.start_offset > 0

    play(what)


def test_a_snapshot_after_so_many_updates(play: Play) -> None:
    async def what(life: Life) -> None:
        await life.shard.initialize(KEY, state_epoch=0, start=0)
        for number in range(1, 2 * UPDATES_PER_SNAPSHOT + 3):
            await life.shard.write(KEY, state_epoch=0, leader_epoch=0, start=number, batches=[])
            kept = life.shard.states[KEY]
            assert (kept.snapshot_epoch, kept.updates) == divmod(number, UPDATES_PER_SNAPSHOT + 1)

    play(what)


def test_answers_leave_when_the_replicas_have_it(play: Play) -> None:
    async def what(life: Life) -> None:
        begin = asyncio.ensure_future(life.shard.initialize(KEY, state_epoch=0, start=0))
        await asyncio.sleep(0.01)
        look = asyncio.ensure_future(life.shard.summary(KEY))
        again = asyncio.ensure_future(life.shard.initialize(KEY, state_epoch=0, start=0))
        await asyncio.sleep(0.01)
        assert not begin.done() and not look.done() and not again.done()
        life.follower_has_all()
        await asyncio.gather(begin, look, again)
        gone = asyncio.ensure_future(life.shard.delete(KEY))
        await asyncio.sleep(0.01)
        look = asyncio.ensure_future(life.shard.summary(KEY))
        await asyncio.sleep(0.01)
        assert not gone.done() and not look.done(), "the end may still be lost"
        life.follower_has_all()
        await asyncio.gather(gone, look)
        assert look.result() == Summary()

    play(what, isr=(0, 1))


def test_nothing_is_pruned_before_what_replaces_it_is_committed(play: Play) -> None:
    async def what(life: Life) -> None:
        log, shard = life.partition.log, life.shard
        begin = asyncio.gather(*(shard.initialize(key, state_epoch=0, start=0) for key in (KEY, OTHER)))
        await asyncio.sleep(0.01)
        life.follower_has_all()
        await begin
        anew = asyncio.gather(*(shard.initialize(key, state_epoch=1, start=0) for key in (KEY, OTHER)))
        pruned = asyncio.ensure_future(shard.prune())
        await asyncio.sleep(0.01)
        assert not pruned.done() and log.start_offset == 0
        life.follower_has_all()
        assert await pruned == 2 and log.start_offset == 2
        await anew
        assert await shard.prune() == 0
        await life.check_survives()

    play(what, isr=(0, 1))


def test_a_quiet_state_does_not_hold_up_pruning(play: Play) -> None:
    async def what(life: Life) -> None:
        log, shard = life.partition.log, life.shard
        await shard.initialize(OTHER, state_epoch=0, start=0)
        await shard.initialize(KEY, state_epoch=0, start=0)
        assert await shard.snapshot_cold(now_ms=life.clock.ms + COLD_MS, age_ms=COLD_MS) == 0, (
            "there is nothing to gain"
        )
        for number in range(UPDATES_PER_SNAPSHOT + 1):
            life.clock.ms += COLD_MS // 2
            await shard.write(KEY, state_epoch=0, leader_epoch=0, start=number, batches=[])
        assert await shard.prune() == 0
        assert await shard.snapshot_cold(now_ms=life.clock.ms, age_ms=COLD_MS) == 1
        assert await shard.prune() > 0 and log.end_offset - log.start_offset == 2
        assert await shard.snapshot_cold(now_ms=life.clock.ms + COLD_MS, age_ms=COLD_MS) == 0
        await life.check_survives()

    play(what)


def test_states_go_with_their_topics(play: Play) -> None:
    async def what(life: Life) -> None:
        shard = life.shard
        elsewhere = ShareKey("g", uuid.uuid4(), 0)
        for key in (KEY, OTHER, elsewhere):
            await shard.initialize(key, state_epoch=0, start=0)
        shard.topics_deleted({TOPIC})
        assert list(shard.states) == [elsewhere]
        assert shard.drop_orphans(lambda topic_id: False) == 0, "the news of a topic may come after its records"
        assert shard.drop_orphans(lambda topic_id: True) == 0
        assert shard.drop_orphans(lambda topic_id: False) == 0
        assert shard.drop_orphans(lambda topic_id: False) == 1
        await life.check_survives()
        assert await shard.prune() == 6 and life.partition.log.start_offset == life.partition.log.end_offset

    play(what)


def test_one_who_leads_no_longer_says_so(play: Play) -> None:
    async def what(life: Life) -> None:
        await life.shard.initialize(KEY, state_epoch=0, start=0)
        life.shard.unload()
        asked = life.shard.write(KEY, state_epoch=0, leader_epoch=0, start=1, batches=[])
        assert await code_of(asked) is Code.not_coordinator
        assert life.shard.states[KEY].start == 0

    play(what)
