"""Log dirs: what is created is found again, what is foreign is set aside, and a broken dir breaks nothing else."""

import asyncio
import errno
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from ottla.errors import Code, KafkaError, Refusal
from ottla.storage.core.names import marked, parse_folder
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories import checkpoint, meta
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.directory import claim_all
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.system import RealDisk, System
from support.logs import SteppedClock, fill

A, B = UUID(int=1), UUID(int=2)


class FailingDisk(RealDisk):
    """A disk on which everything under one path fails from some time on."""

    broken = "none"

    def _check(self, path: str) -> None:
        if path.startswith(self.broken):
            raise OSError(errno.EIO, "Input/output error", path)

    def open(self, path, *, create=False):  # type: ignore[no-untyped-def]
        self._check(path)
        return super().open(path, create=create)

    def replace_file(self, path: str, data: bytes) -> None:
        self._check(path)
        super().replace_file(path, data)

    def make_folder(self, path: str, *, private: bool = False) -> None:
        self._check(path)
        super().make_folder(path, private=private)

    def rename(self, old: str, new: str) -> None:
        self._check(old)
        super().rename(old, new)


class Broker:
    def __init__(self, paths: Sequence[Path], *, disk: RealDisk | None = None, cluster_id: str | None = "c") -> None:
        self.clock = SteppedClock()
        self.system = System(clock=self.clock, disk=disk or RealDisk())
        self.files = FileCache(self.system.disk, 50)
        self.events: list[object] = []
        self.directories = LogDirectories(
            claim_all(self.system, [str(path) for path in paths], cluster_id=cluster_id, node_id=1),
            system=self.system,
            files=self.files,
            on_failure=lambda one, lost: self.events.append((one.path, sorted(lost))),
            on_all_failed=lambda: self.events.append("all failed"),
        )
        self.directories.identify(cluster_id=cluster_id or "c", node_id=1)

    async def open(self) -> LogDirectories:
        await self.directories.open_all(lambda topic: LogSettings())
        return self.directories


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir() if one.is_dir())


def crash(broker: Broker) -> None:
    """What the end of the process does to its locks."""
    for one in broker.directories.directories:
        one.release()


async def write_with_checkpoints(logs: LogDirectories) -> Log:
    """t-0 holds offsets 13 to 29, all durable; 27 is its high watermark."""
    log = await logs.create("t", 0, A, LogSettings(segment_bytes=500))
    fill(log, 10)
    log.flush()
    log.advance_start(13)
    await logs.write_checkpoints({("t", 0): 27})
    return log


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", ("orders", 0)),
        ("my.topic-with-dashes-12", ("my.topic-with-dashes", 12)),
        ("a-1-2", ("a-1", 2)),
        ("-5", None),
        ("orders", None),
        ("orders-", None),
        ("orders-x", None),
        ("orders-01", None),
        ("orders-1.0a1b-delete", None),
        ("recovery-point-offset-checkpoint", None),
        ("__ottla_metadata", None),
    ],
)
def test_folder_names(name: str, parsed: tuple[str, int] | None) -> None:
    assert parse_folder(name) == parsed


def test_a_marked_name_fits_the_file_system() -> None:
    assert marked("orders", 3, UUID(int=10), "-delete") == "orders-3.0000000000000000000000000000000a-delete"
    long = marked("t" * 249, 123456, UUID(int=10), "-stray")
    assert len(long) == 255 and long.endswith("-123456.0000000000000000000000000000000a-stray")


def test_balanced_created_found_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        paths = [tmp_path / "one", tmp_path / "two"]
        broker = Broker(paths)
        logs = await broker.open()
        await asyncio.gather(*(logs.create("t", number, A, LogSettings()) for number in range(10)))
        assert [len(names(path)) for path in paths] == [5, 5]
        assert await logs.create("t", 3, A, LogSettings()) is logs.logs[("t", 3)]
        fill(logs.logs[("t", 3)], 4)
        await logs.close({("t", 3): 9})
        assert (paths[0] / ".kafka_cleanshutdown").exists()

        again = await Broker(paths).open()
        assert sorted(again.logs) == [("t", number) for number in range(10)]
        assert again.logs[("t", 3)].end_offset == 12
        assert again.high_watermarks == {("t", 3): 9}
        assert again.topic_ids[("t", 0)] == A
        assert not (paths[0] / ".kafka_cleanshutdown").exists(), "from now on a stop is a crash"

    asyncio.run(scenario())


def test_checkpoints_are_kafkas_and_serve_after_a_crash(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker([tmp_path])
        logs = await broker.open()
        await write_with_checkpoints(logs)
        assert checkpoint.read(RealDisk(), str(tmp_path), checkpoint.RECOVERY_POINT) == {("t", 0): 30}
        assert checkpoint.read(RealDisk(), str(tmp_path), checkpoint.HIGH_WATERMARK) == {("t", 0): 27}
        assert checkpoint.read(RealDisk(), str(tmp_path), checkpoint.LOG_START) == {("t", 0): 13}
        crash(broker)
        again = await Broker([tmp_path]).open()
        assert (again.logs[("t", 0)].start_offset, again.logs[("t", 0)].end_offset) == (13, 30)
        assert again.high_watermarks == {("t", 0): 27}

    asyncio.run(scenario())


def test_after_a_crash_no_watermark_is_beyond_what_was_durable(tmp_path: Path) -> None:
    """What is behind it may be an older state of the file: what a leader's word had cut off."""

    async def scenario() -> None:
        logs = await (broker := Broker([tmp_path])).open()
        log = await logs.create("t", 0, A, LogSettings())
        fill(log, 2)
        log.flush()
        fill(log, 2)
        await logs.write_checkpoints({("t", 0): 12})
        crash(broker)
        assert (await Broker([tmp_path]).open()).high_watermarks == {("t", 0): 6}

    asyncio.run(scenario())


def test_a_torn_checkpoint_is_not_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        logs = await Broker([tmp_path]).open()
        fill(await logs.create("t", 0, A, LogSettings()), 3)
        await logs.close({})
        (tmp_path / checkpoint.RECOVERY_POINT).write_bytes(b"0\n1\nt zero")
        assert (await Broker([tmp_path]).open()).logs[("t", 0)].end_offset == 9

    asyncio.run(scenario())
    assert "recovery-point-offset-checkpoint, line 3" in caplog.text


def test_delete_is_at_once_and_files_go_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker([tmp_path])
        logs = await broker.open()
        log = await logs.create("t-x", 1, A, LogSettings())
        fill(log, 2)
        logs.delete(log)
        assert logs.logs == {}
        (left,) = names(tmp_path)
        assert left.startswith("t-x-1.") and left.endswith("-delete")
        await logs.purge(broker.clock.now_ms + 59_999)
        assert names(tmp_path) == [left]
        fresh = await logs.create("t-x", 1, B, LogSettings())
        assert fresh.end_offset == 0
        await logs.purge(broker.clock.now_ms + 60_000)
        assert names(tmp_path) == ["t-x-1"]

    asyncio.run(scenario())


def test_who_still_reads_a_deleted_topic_never_meets_the_new_one_of_its_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker([tmp_path])
        logs = await broker.open()
        log = await logs.create("t", 0, A, LogSettings())
        fill(log, 2)
        logs.delete(log)
        fill(await logs.create("t", 0, B, LogSettings()), 7)
        assert log.segments[0].opened().file.size() == log.segments[0].size

    asyncio.run(scenario())


def test_an_interrupted_removal_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "t-0.00ff-delete").mkdir()
        (tmp_path / "t-1.00ff-stray").mkdir()
        logs = await Broker([tmp_path]).open()
        assert logs.logs == {}
        await logs.purge(0)
        assert names(tmp_path) == ["t-1.00ff-stray"]

    asyncio.run(scenario())


def test_a_new_topic_does_not_inherit_the_checkpoints_of_its_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker([tmp_path])
        logs = await broker.open()
        log = await write_with_checkpoints(logs)
        await logs.write_cleaned(("t", 0), 12)
        logs.delete(log)
        assert logs.cleaned == {}
        fill(await logs.create("t", 0, B, LogSettings()), 7)
        crash(broker)
        again = await Broker([tmp_path]).open()
        assert (again.logs[("t", 0)].start_offset, again.logs[("t", 0)].end_offset) == (0, 21)
        assert again.high_watermarks == {} and again.cleaned == {}

    asyncio.run(scenario())


def test_foreign_folders_are_set_aside_never_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        logs = await Broker([tmp_path]).open()
        for name, topic_id in (("kept", A), ("reborn", A), ("deleted", A), ("torn", A), ("empty", A)):
            fill(await logs.create(name, 0, topic_id, LogSettings()), 0 if name == "empty" else 1)
        await logs.close({})
        for name in ("torn", "empty"):
            (tmp_path / f"{name}-0" / "partition.metadata").unlink()
        logs = await Broker([tmp_path]).open()
        aside = logs.reconcile({("kept", 0): A, ("reborn", 0): B, ("torn", 0): B, ("empty", 0): B})
        assert sorted(aside) == [("deleted", 0), ("reborn", 0), ("torn", 0)]
        assert sorted(logs.logs) == [("empty", 0), ("kept", 0)]
        strays = [name for name in names(tmp_path) if name.endswith("-stray")]
        assert sorted(name.split("-")[0] for name in strays) == ["deleted", "reborn", "torn"]
        assert logs.topic_ids[("empty", 0)] == B
        assert (await logs.create("reborn", 0, B, LogSettings())).end_offset == 0
        await logs.close({})
        assert sorted((await Broker([tmp_path]).open()).logs) == [("empty", 0), ("kept", 0), ("reborn", 0)]

    asyncio.run(scenario())


def test_a_log_without_its_file_stays_where_this_broker_is_a_replica(tmp_path: Path) -> None:
    async def scenario() -> None:
        logs = await Broker([tmp_path]).open()
        fill(await logs.create("t", 0, A, LogSettings()), 2)
        await logs.close({})
        (tmp_path / "t-0" / "partition.metadata").unlink()
        logs = await Broker([tmp_path]).open()
        assert logs.reconcile({("t", 0): A}, {("t", 0)}) == []
        assert logs.logs[("t", 0)].end_offset == 6
        await logs.close({})
        assert (await Broker([tmp_path]).open()).topic_ids[("t", 0)] == A

    asyncio.run(scenario())


@pytest.mark.parametrize("data", [b"", b"\xff\x00"])
def test_a_log_whose_file_is_malformed_takes_its_directory_offline(tmp_path: Path, data: bytes) -> None:
    """Its records are neither set aside nor is an empty log served for them."""

    async def scenario() -> None:
        paths = [tmp_path / "one", tmp_path / "two"]
        logs = await Broker(paths).open()
        log = await logs.create("t", 0, A, LogSettings())
        folder = Path(log.folder)
        fill(log, 2)
        await logs.close({})
        (folder / "partition.metadata").write_bytes(data)
        again = await Broker(paths).open()
        assert again.reconcile({("t", 0): A}, {("t", 0)}) == []
        assert [one.path for one in again.online] == [str(path) for path in paths if path != folder.parent]
        assert [name for path in paths for name in names(path) if "t-0" in name] == ["t-0"]
        error = next(one.error for one in again.directories if one.error is not None)
        assert "partition.metadata is malformed; restore it" in str(error)

    asyncio.run(scenario())


def test_names_that_are_not_what_they_must_be_are_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        logs = await Broker([tmp_path]).open()
        log = await logs.create("t", 0, A, LogSettings())
        fill(log, 2)
        (tmp_path / "core-4711").write_text("x")
        (tmp_path / "notes-delete").write_text("x")
        for name in ("00000000000000000500.log", "00000000000000000003.index"):
            (Path(log.folder) / name).mkdir()
        await logs.close({})
        again = await Broker([tmp_path]).open()
        assert list(again.logs) == [("t", 0)]
        assert again.logs[("t", 0)].end_offset == 6
        await again.purge(1 << 60)
        assert len(again.online) == 1

    asyncio.run(scenario())
    skipped = [record.getMessage() for record in caplog.records if "is skipped" in record.getMessage()]
    assert len(skipped) == 4


def test_a_failed_directory_takes_only_its_own_logs(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = FailingDisk()
        paths = [tmp_path / "one", tmp_path / "two"]
        broker = Broker(paths, disk=disk)
        logs = await broker.open()
        for number in range(4):
            await logs.create("t", number, A, LogSettings())
        lost = sorted(logs.directories[0].logs)
        disk.broken = str(paths[0])
        await logs.write_checkpoints({})
        assert broker.events == [(str(paths[0]), lost)]
        assert len(logs.logs) == 2 and not set(lost) & set(logs.logs)
        assert logs.fail(logs.directories[0], OSError("again")) == [], "it fails once"
        fill(next(iter(logs.logs.values())), 2)
        for number in (5, 6):
            assert (await logs.create("t", number, A, LogSettings())).folder.startswith(str(paths[1]))
        facts = {one.path: one for one in await logs.describe()}
        assert facts[str(paths[0])].error is not None and facts[str(paths[0])].sizes == {}
        assert facts[str(paths[1])].total_bytes > facts[str(paths[1])].usable_bytes > 0
        assert len(facts[str(paths[1])].sizes) == 4
        disk.broken = str(paths[1])
        with pytest.raises(KafkaError) as raised:
            await logs.create("t", 7, A, LogSettings())
        assert raised.value.code is Code.kafka_storage_error
        assert broker.events[1][0] == str(paths[1]) and broker.events[2:] == ["all failed"]  # type: ignore[index]
        with pytest.raises(KafkaError, match="every log dir is offline"):
            await logs.create("t", 8, A, LogSettings())
        disk.broken = "none"
        await logs.close({})
        assert not any((path / ".kafka_cleanshutdown").exists() for path in paths), (
            "a failed dir was not stopped cleanly"
        )

    asyncio.run(scenario())


def test_a_directory_that_is_broken_at_the_start_is_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "file").write_text("not a folder")
        logs = await Broker([tmp_path / "file", tmp_path / "good"]).open()
        assert [one.error is None for one in logs.directories] == [False, True]
        assert (await logs.create("t", 0, A, LogSettings())).folder == str(tmp_path / "good" / "t-0")

    asyncio.run(scenario())
    with pytest.raises(Refusal, match="cannot be used: there is a file of that name"):
        Broker([tmp_path / "file"])


def test_refusals_let_go_of_every_lock(tmp_path: Path) -> None:
    mine = Broker([tmp_path / "mine"])
    crashed = Broker([tmp_path / "other"], cluster_id="somebody")
    crash(crashed)
    with pytest.raises(Refusal, match="belongs to cluster somebody"):
        Broker([tmp_path / "new", tmp_path / "other"])
    crash(Broker([tmp_path / "new"]))
    with pytest.raises(Refusal, match="is locked"):
        Broker([tmp_path / "new", tmp_path / "mine"])
    with pytest.raises(Refusal, match="belongs to cluster"):
        Broker([tmp_path / "new", tmp_path / "other"], cluster_id=None)
    crash(mine)


@pytest.mark.parametrize(("held", "sentence"), [("t-0", "1 partitions"), ("__ottla_metadata", "the metadata log")])
def test_data_without_meta_properties_is_not_formatted_again(tmp_path: Path, held: str, sentence: str) -> None:
    (tmp_path / held).mkdir()
    with pytest.raises(Refusal, match=sentence):
        Broker([tmp_path])
    assert not (tmp_path / "meta.properties").exists()
    (tmp_path / held).rmdir()
    Broker([tmp_path])


def test_one_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        crash(Broker([tmp_path / "one", tmp_path / "two"]))
        for name in ("one", "two"):
            (tmp_path / name / "t-0").mkdir()
        with pytest.raises(Refusal, match="hold the same partition"):
            await Broker([tmp_path / "one", tmp_path / "two"]).open()

    asyncio.run(scenario())


@pytest.mark.parametrize("current", ["one", "two"])
def test_of_two_logs_with_one_name_that_of_the_present_topic_stays(tmp_path: Path, current: str) -> None:
    """The topic was deleted and created again while this broker was away; the new log went to the other directory."""
    ids = {"one": uuid4(), "two": uuid4()}

    async def scenario() -> None:
        crash(Broker([tmp_path / "one", tmp_path / "two"]))
        for name, topic_id in ids.items():
            (tmp_path / name / "t-0").mkdir()
            meta.write_topic_id(RealDisk(), str(tmp_path / name / "t-0"), topic_id)
        broker = Broker([tmp_path / "one", tmp_path / "two"])
        await broker.directories.open_all(lambda topic: LogSettings(), {("t", 0): ids[current]})
        assert broker.directories.logs["t", 0].folder == str(tmp_path / current / "t-0")
        assert broker.directories.topic_ids["t", 0] == ids[current]
        other = next(name for name in ids if name != current)
        assert [name.endswith("-stray") for name in names(tmp_path / other)] == [True]

    asyncio.run(scenario())


def test_many_partitions_load_fast_and_open_few_files(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker([tmp_path])
        logs = await broker.open()
        for start in range(0, 200, 50):
            await asyncio.gather(*(logs.create("t", start + n, A, LogSettings()) for n in range(50)))
        for log in logs.logs.values():
            fill(log, 1)
        await logs.close({})
        started = time.process_time()
        again = Broker([tmp_path])
        await again.open()
        assert len(again.directories.logs) == 200
        assert len(again.files) <= 50
        assert time.process_time() - started < 1, "10,000 must load in seconds"

    asyncio.run(scenario())
