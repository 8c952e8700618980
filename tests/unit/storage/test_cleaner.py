"""The cleaner on real directories: choose, rewrite, swap, remember; crash at any step; fail without harm."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from ottla.storage.compaction.cleaner import Cleaner
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories import checkpoint
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.directory import claim_all
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.storage.workers.worker import InlineWorker, ProcessWorker, Worker, WorkerDied
from ottla.system import RealDisk, System
from ottla.wire.batch import parse
from ottla.wire.records import Record, encode, iterate
from support.logs import T0, SteppedClock, read_all
from support.loop_calls import LoopCalls

COMPACT = LogSettings(cleanup_policies=frozenset({"compact"}), segment_bytes=300, delete_retention_ms=1000)
TOPIC = UUID(int=7)
KEY = ("users", 0)


class Broker:
    """The part of a broker that compacts."""

    def __init__(self, path: Path, *, system: System | None = None, worker: Worker | None = None) -> None:
        self.clock = SteppedClock()
        self.system = system or System(clock=self.clock)
        self.failed: list[object] = []
        self.directories = LogDirectories(
            claim_all(self.system, [str(path)], cluster_id="c", node_id=1),
            system=self.system,
            files=FileCache(self.system.disk, 100),
            on_failure=lambda one, lost: self.failed.append(lost),
            on_all_failed=lambda: self.failed.append("all"),
        )
        self.directories.identify(cluster_id="c", node_id=1)
        self.cleaner = Cleaner(
            self.directories,
            worker=worker or InlineWorker(),
            system=self.system,
            stable_offset=lambda key: self.directories.logs[key].end_offset,
        )

    async def log(self, settings: LogSettings = COMPACT, key: tuple[str, int] = KEY) -> Log:
        return await self.directories.create(*key, TOPIC, settings)


def put(log: Log, *pairs: tuple[str, str | None]) -> None:
    for key, value in pairs:
        data = encode([Record(0, T0, key.encode(), value.encode() if value is not None else None)])
        log.append(parse(data), leader_epoch=0)


def churn(log: Log, rounds: int = 12) -> None:
    for number in range(rounds):
        put(log, ("a", f"a{number}"), ("b", f"b{number}"), (f"only-{number}", "x"))


def contents(log: Log) -> dict[bytes | None, tuple[int, bytes | None]]:
    return {record.key: (record.offset, record.value) for batch in read_all(log) for record in iterate(batch)}


def count(log: Log) -> int:
    return sum(batch.count for batch in read_all(log))


def test_cleans_the_log_and_remembers_how_far(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker(tmp_path)
        log = await broker.log()
        churn(log)
        before, size = contents(log), log.size_bytes
        assert await broker.cleaner.clean_once()
        assert contents(log) == before
        assert log.size_bytes < size
        offsets = [record.offset for batch in read_all(log) for record in iterate(batch)]
        assert offsets == sorted(offsets)
        sealed = [one for one in log.segments if one is not log.active]
        keys = [record.key for one in sealed for _, batch in one.batches(whole=True) for record in iterate(batch)]
        assert keys.count(b"a") <= 1 and keys.count(b"only-0") == 1
        assert broker.directories.cleaned == {KEY: log.active.base_offset}
        found = checkpoint.read(RealDisk(), str(tmp_path), checkpoint.CLEANER)
        assert found == {KEY: log.active.base_offset}
        assert not await broker.cleaner.clean_once(), "nothing is dirty any more"
        churn(log, 40)
        assert await broker.cleaner.clean_once()
        await broker.directories.close({})

        again = Broker(tmp_path)
        await again.directories.open_all(lambda topic: COMPACT)
        assert contents(again.directories.logs[KEY]) == contents(log)
        assert not await again.cleaner.clean_once(), "the checkpoint was read"

    asyncio.run(scenario())


def test_in_a_worker_process(tmp_path: Path) -> None:
    async def scenario() -> None:
        worker = ProcessWorker()
        broker = Broker(tmp_path, worker=worker)
        log = await broker.log()
        churn(log)
        before, size = contents(log), log.size_bytes
        assert await broker.cleaner.clean_once()
        await worker.close()
        assert contents(log) == before and log.size_bytes < size
        assert not broker.cleaner.uncleanable

    asyncio.run(scenario())


def test_tombstones_go_one_retention_after_they_were_first_cleaned(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker(tmp_path)
        log = await broker.log()
        put(log, ("a", "1"), ("a", None))
        churn(log)
        await broker.cleaner.clean_once()
        assert contents(log)[b"a"][1] is not None
        put(log, ("gone", "1"), ("gone", None))
        churn(log, 30)
        await broker.cleaner.clean_once()
        assert contents(log)[b"gone"] == (contents(log)[b"gone"][0], None), "it stays for slow readers"
        broker.clock.now_ms += 1001
        churn(log, 60)
        assert await broker.cleaner.clean_once()
        assert b"gone" not in contents(log)

    asyncio.run(scenario())


def test_only_compacted_logs_and_the_dirtiest_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker(tmp_path)
        plain = await broker.log(LogSettings(segment_bytes=300), ("plain", 0))
        little, much = await broker.log(key=("little", 0)), await broker.log(key=("much", 0))
        for log in (plain, little, much):
            churn(log)
        broker.directories.cleaned[("little", 0)] = little.segments[2].base_offset
        sizes = plain.size_bytes, little.size_bytes, much.size_bytes
        await broker.cleaner.clean_once()
        assert (plain.size_bytes, little.size_bytes) == sizes[:2] and much.size_bytes < sizes[2]
        await broker.cleaner.clean_once()
        assert plain.size_bytes == sizes[0] and little.size_bytes < sizes[1]
        assert not await broker.cleaner.clean_once()

    asyncio.run(scenario())


class Interrupting(InlineWorker):
    """Does something before or after the n-th job: 1 is the index, 2 and on are groups of segments."""

    def __init__(self, at: int, action: Callable[[], object], *, after: bool = False) -> None:
        self.at, self.action, self.after = at, action, after

    async def run(self, function, *arguments):  # type: ignore[no-untyped-def]
        self.at -= 1
        if self.at == 0 and not self.after:
            self.action()
        result = await super().run(function, *arguments)
        if self.at == 0 and self.after:
            self.action()
        return result


def test_a_rotten_log_is_left_alone_with_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        broker = Broker(tmp_path)
        log = await broker.log()
        churn(log)
        path = tmp_path / "users-0" / "00000000000000000000.log"
        data = bytearray(path.read_bytes())
        data[8:12] = b"\x7f\xff\xff\xff"
        path.write_bytes(data)
        assert await broker.cleaner.clean_once()
        assert broker.cleaner.uncleanable == {KEY}
        assert not await broker.cleaner.clean_once()
        assert path.read_bytes() == data, "nothing was overwritten"
        assert broker.failed == []

    asyncio.run(scenario())
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "users-0 is not compacted until the next start"
    ]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("job", [1, 2, 3])
def test_a_log_that_is_deleted_meanwhile_is_nobodys_failure(tmp_path: Path, job: int, after: bool) -> None:
    async def scenario() -> None:
        broker = Broker(tmp_path, worker=Interrupting(job, lambda: broker.directories.delete(log), after=after))
        log = await broker.log()
        churn(log)
        await broker.cleaner.clean_once()
        assert broker.failed == [] and not broker.cleaner.uncleanable
        assert not await broker.cleaner.clean_once()

    asyncio.run(scenario())


@pytest.mark.parametrize("job", [1, 2, 3])
def test_a_worker_that_dies_is_not_the_logs_fault(tmp_path: Path, job: int) -> None:
    """The log is cleaned the next time, which is not at once: what killed the worker may do so again."""

    def die() -> None:
        raise WorkerDied("killed")

    async def scenario() -> None:
        broker = Broker(tmp_path, worker=Interrupting(job, die, after=False))
        log = await broker.log()
        churn(log)
        before, size = contents(log), log.size_bytes
        assert not await broker.cleaner.clean_once()
        assert broker.failed == [] and not broker.cleaner.uncleanable
        assert await broker.cleaner.clean_once()
        assert contents(log) == before and log.size_bytes < size

    asyncio.run(scenario())


def test_a_log_over_which_every_worker_dies_does_not_keep_others_from_being_cleaned(tmp_path: Path) -> None:
    class Dying(InlineWorker):
        async def run(self, function, *arguments):  # type: ignore[no-untyped-def]
            raise WorkerDied("killed")

    async def scenario() -> None:
        broker = Broker(tmp_path, worker=Dying())
        churn(await broker.log())
        assert [await broker.cleaner.clean_once() for _ in range(4)] == [False, False, True, False]
        assert broker.cleaner.uncleanable == {KEY} and broker.failed == []

    asyncio.run(scenario())


@pytest.mark.parametrize("after", [False, True])
def test_retention_that_is_faster_wins(tmp_path: Path, after: bool) -> None:
    async def scenario() -> None:
        def begin_later() -> None:
            log.advance_start(log.segments[-2].base_offset)
            log.delete_below_start()

        shorten = Interrupting(3, begin_later, after=after)
        broker = Broker(tmp_path, worker=shorten)
        log = await broker.log(LogSettings(cleanup_policies=frozenset({"compact", "delete"}), segment_bytes=300))
        churn(log)
        await broker.cleaner.clean_once()
        assert broker.failed == [] and not broker.cleaner.uncleanable
        assert count(log) > 0
        assert await broker.cleaner.clean_once(), "the rest is still dirty"

    asyncio.run(scenario())


def test_a_disk_error_is_the_directorys(tmp_path: Path) -> None:
    def broken() -> None:
        raise OSError(5, "Input/output error")

    async def scenario() -> None:
        broker = Broker(tmp_path, worker=Interrupting(2, broken))
        churn(await broker.log())
        await broker.cleaner.clean_once()
        assert broker.failed == [[KEY], "all"]
        assert broker.directories.logs == {}

    asyncio.run(scenario())


class Photographing(RealDisk):
    """Copies the data directory before and after every change of a name, as a crash there would leave it."""

    def __init__(self, folder: Path, pictures: Path) -> None:
        self.folder, self.pictures, self.on = folder, pictures, False

    def picture(self) -> None:
        if self.on:
            shutil.copytree(self.folder, self.pictures / str(len(list(self.pictures.iterdir()))))

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        self.picture()

    def replace_file(self, path: str, data: bytes) -> None:
        self.picture()
        super().replace_file(path, data)
        self.picture()

    def remove(self, path: str) -> None:
        super().remove(path)
        self.picture()


def test_a_crash_at_any_step_loses_no_key(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    disk = Photographing(tmp_path / "data", pictures)

    async def scenario() -> None:
        broker = Broker(tmp_path / "data", system=System(clock=SteppedClock(), disk=disk))
        log = await broker.log()
        churn(log, 5)
        log.flush()
        before = contents(log)
        disk.on = True
        await broker.cleaner.clean_once()
        disk.on = False
        taken = sorted(pictures.iterdir(), key=lambda one: int(one.name))
        assert len(taken) > 10
        for picture in taken:
            crashed = Broker(picture)
            await crashed.directories.open_all(lambda topic: COMPACT)
            assert contents(crashed.directories.logs[KEY]) == before, picture
            await crashed.cleaner.clean_once()
            assert contents(crashed.directories.logs[KEY]) == before, picture
            assert not crashed.cleaner.uncleanable

    asyncio.run(scenario())


class ThreadWorker(InlineWorker):
    """As the worker process does it: not on the loop."""

    async def run(self, function, *arguments):  # type: ignore[no-untyped-def]
        return await asyncio.to_thread(function, *arguments)


def test_the_loop_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = LoopCalls(monkeypatch)

    async def scenario() -> None:
        broker = Broker(tmp_path, worker=ThreadWorker())
        log = await broker.log()
        churn(log)
        before, size = contents(log), log.size_bytes
        calls.begin()
        assert await broker.cleaner.clean_once()
        calls.end()
        assert calls.elsewhere["fsync"] >= 2 and calls.elsewhere["replace"] >= 8
        assert calls.on_loop == {}
        assert contents(log) == before and log.size_bytes < size

    asyncio.run(scenario())
