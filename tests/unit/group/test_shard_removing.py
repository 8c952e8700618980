"""Much that goes at once goes in slices: what happens between two of them counts."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import Rules
from ottla.group.classic.member import Join, Joined
from ottla.group.loading import GroupLoading
from ottla.group.offsets.expiry import TOMBSTONES_PER_BATCH_MAX
from ottla.group.offsets.records import OFFSET_BYTES, CommittedOffset, offset_key, offset_value
from ottla.group.offsets_topic import OFFSETS_TOPIC
from ottla.group.shard import GROUP_BYTES, UNJOINED_GROUPS_MAX, Shard
from ottla.metadata.model.state import PartitionState
from ottla.replica.partition import Partition
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.system import System

GROUPS = 3 * TOMBSTONES_PER_BATCH_MAX
OLD = CommittedOffset(5, -1, "", 0)


class Life:
    """A shard of groups on a log of its own, alone in its fleet."""

    def __init__(self, folder: Path) -> None:
        self.system = System()
        files = FileCache(self.system.disk, 16)
        log = Log.open(f"{folder}/o-0", settings=LogSettings(), system=self.system, files=files, clean=False)
        self.partition = Partition(
            OFFSETS_TOPIC,
            0,
            log,
            topic_id=uuid.uuid4(),
            system=self.system,
            node_id=0,
            high_watermark=0,
            on_disk_error=lambda *_: None,
            epoch_of=lambda _: 1,
        )
        state = PartitionState(index=0, replicas=(0,), isr=(0,), leader=0, leader_epoch=1, partition_epoch=0)
        self.partition.become(state, isr_size_min=1)
        self.shard = self.new_shard()
        self.shard.loaded()

    def new_shard(self) -> Shard:
        return Shard(
            self.partition,
            clock=self.system.clock,
            rules=Rules(new_id=lambda: str(uuid.uuid4()), wall_ms=lambda: 0),
            write_rules=WriteRules(),
            consumer_rules=cast(Any, lambda shard: None),
            share_rules=cast(Any, lambda shard: None),
            computing=cast(Any, None),
        )

    async def reloaded(self) -> Shard:
        shard = self.new_shard()
        assert await GroupLoading(shard, read_bytes_max=1 << 20).run()
        shard.loaded()
        return shard

    def commit(self, group: str, topic: str = "t", offset: CommittedOffset = OLD) -> None:
        self.shard.apply([(offset_key(group, topic, 0), offset_value(offset))])

    def join(self, group: str, member_id: str = "") -> Joined:
        request = Join(member_id, None, "c", "/h", 6000, 6000, "consumer", (("range", bytes(6)),))
        answer: asyncio.Future[Joined] = asyncio.get_running_loop().create_future()
        self.shard.join(group, request, answer)
        return answer.result() if answer.done() else Joined()

    def close(self) -> None:
        self.shard.unload()
        self.partition.log.close(clean=False)


Play = Callable[[Callable[[Life], Awaitable[None]]], None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    def run(what: Callable[[Life], Awaitable[None]]) -> None:
        async def live() -> None:
            life = Life(tmp_path)
            try:
                await what(life)
            finally:
                life.close()

        asyncio.run(live())

    return run


def test_everything_that_expired_goes(play: Play) -> None:
    async def what(life: Life) -> None:
        for number in range(GROUPS):
            life.commit(f"g{number}")
        for number in range(GROUPS):
            life.commit("wide", f"t{number}")
        assert life.shard.kept_bytes > 2 * GROUPS * OFFSET_BYTES + GROUPS * GROUP_BYTES
        assert await life.shard.expire(now_ms=1000, retention_ms=1000) == 2 * GROUPS
        assert life.shard.kept_bytes == 0
        assert not life.shard.groups and not any(map(life.shard.offsets.has, ("wide", "g0", f"g{GROUPS - 1}")))
        again = await life.reloaded()
        assert not again.groups and not again.offsets.of_topics({"t", "t0", f"t{GROUPS - 1}"})

    play(what)


def test_a_commit_between_two_slices_stays(play: Play) -> None:
    async def what(life: Life) -> None:
        for number in range(GROUPS):
            life.commit(f"g{number}")
        expiring = asyncio.ensure_future(life.shard.expire(now_ms=1000, retention_ms=1000))
        await asyncio.sleep(0)
        assert 0 < len(life.shard.groups) < GROUPS, "a slice is done"
        kept = next(iter(life.shard.groups))
        life.commit(kept, offset=CommittedOffset(9, -1, "", 1000))
        await expiring
        assert list(life.shard.groups) == [kept]

    play(what)


def test_nothing_is_written_once_the_shard_is_unloaded(play: Play) -> None:
    async def what(life: Life) -> None:
        for number in range(GROUPS):
            life.commit(f"g{number}")
        found = life.shard.offsets.of_topics({"t"})
        expiring = asyncio.ensure_future(life.shard.expire(now_ms=1000, retention_ms=1000))
        deleting = asyncio.ensure_future(life.shard.delete_unchanged(found))
        await asyncio.sleep(0)
        end = life.partition.log.end_offset
        life.shard.unload()
        await asyncio.gather(expiring, deleting)
        assert life.partition.log.end_offset == end

    play(what)


def test_a_new_topic_of_the_same_name_keeps_its_offsets(play: Play) -> None:
    async def what(life: Life) -> None:
        for number in range(GROUPS):
            life.commit(f"g{number}")
        deleting = asyncio.ensure_future(life.shard.delete_unchanged(life.shard.offsets.of_topics({"t", "other"})))
        await asyncio.sleep(0)
        life.commit(f"g{GROUPS - 1}", offset=CommittedOffset(1, -1, "", 0))
        await deleting
        assert [group for group, *_ in life.shard.offsets.of_topics({"t", "other"})] == [f"g{GROUPS - 1}"]

    play(what)


def test_groups_that_nobody_joined_are_few(play: Play) -> None:
    async def what(life: Life) -> None:
        life.commit("simple")
        assert life.join("simple").code is Code.member_id_required
        first = life.join("first")
        for number in range(2 * UNJOINED_GROUPS_MAX):
            assert life.join(f"g{number}").code is Code.member_id_required
        assert len(life.shard.groups) == UNJOINED_GROUPS_MAX + 1
        assert "simple" in life.shard.groups and life.shard.offsets.get("simple")
        with pytest.raises(KafkaError, match="unknown_member_id"):
            life.join("first", first.member_id)
        used = f"g{2 * UNJOINED_GROUPS_MAX - 1}"
        promised = cast(Any, life.shard.groups[used]).roster.expired_pending(float("inf"))
        assert life.join(used, promised[0]).code is Code.none
        assert life.partition.log.end_offset == 1, "they are in no log"

    play(what)


def test_a_refused_join_founds_no_group(play: Play) -> None:
    async def what(life: Life) -> None:
        request = Join("", None, "c", "/h", 6000, 6000, "", ())
        answer: asyncio.Future[Joined] = asyncio.get_running_loop().create_future()
        life.shard.join("g", request, answer)
        assert answer.result().code is Code.inconsistent_group_protocol
        assert not life.shard.groups

    play(what)
