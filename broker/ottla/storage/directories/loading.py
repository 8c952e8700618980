"""Starting up: opening what the log dirs hold, and setting aside what is not ours."""

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ottla.errors import Refusal
from ottla.storage.core.folder_names import STRAY, TopicPartition, marked
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories import directory, meta
from ottla.storage.directories.directory import SLICES, Contents, LogDirectory
from ottla.storage.log.log import Log

if TYPE_CHECKING:
    from ottla.storage.directories.directories import LogDirectories

__all__ = ["open_all", "reconcile"]

logger = logging.getLogger("ottla.storage")


Expected: TypeAlias = Mapping[TopicPartition, uuid.UUID]


class Opened(NamedTuple):
    """A log as it was found in one of the dirs, with what that dir's checkpoints say of it."""

    one: LogDirectory
    key: TopicPartition
    log: Log
    topic_id: uuid.UUID | None
    high_watermark: int | None
    cleaned: int | None


async def open_all(
    directories: "LogDirectories", settings_of: Callable[[str], LogSettings], expected: Expected
) -> None:
    opening = [_open_directory(directories, one, settings_of) for one in directories.online]
    for found in await asyncio.gather(*opening):
        for opened in found:
            _admit(directories, opened, expected.get(opened.key))


async def _open_directory(
    directories: "LogDirectories", one: LogDirectory, settings_of: Callable[[str], LogSettings]
) -> list[Opened]:
    system = directories.system
    found: list[Opened] = []
    with directories.containing(one):
        contents = await system.threads.run(directory.survey, system, one)
        directories.doomed.extend((0, path) for path in contents.deleted)
        slices = [contents.partitions[start::SLICES] for start in range(SLICES)]
        opening = [
            system.threads.run(directory.open_logs, system, directories.files, one, contents, part, settings_of)
            for part in slices
            if part
        ]
        for opened in await asyncio.gather(*opening):
            for key, log, topic_id in opened:
                one.logs[key] = log
                offsets = _trusted_watermark(contents, key), contents.cleaned.get(key)
                found.append(Opened(one, key, log, topic_id, *offsets))
    return found if one.error is None else []


def _trusted_watermark(contents: Contents, key: TopicPartition) -> int | None:
    """After a crash only what was durable is surely what was committed: a power loss brings back what was cut off."""
    mark = contents.high_watermarks.get(key)
    return mark if mark is None or contents.clean else min(mark, contents.recovery_points.get(key, 0))


def _admit(directories: "LogDirectories", opened: Opened, expected: uuid.UUID | None) -> None:
    """Of two logs with one name, one may be of a topic that was deleted while this broker was away."""
    key, rival = opened.key, directories.logs.get(opened.key)
    if rival is not None:
        if opened.topic_id == directories.topic_ids.get(key):
            raise Refusal(f"{rival.folder} and {opened.log.folder} hold the same partition; remove one")
        if opened.topic_id != expected:
            _set_aside(directories, opened)
            return
        with directories.containing(directories.directory_of(rival)):
            _warn(rival, directories.move_away(key, rival, STRAY))
    directories.logs[key] = opened.log
    directories.topic_ids[key] = opened.topic_id
    for known, offset in (
        (directories.high_watermarks, opened.high_watermark),
        (directories.cleaned, opened.cleaned),
    ):
        if offset is not None:
            known[key] = offset


def _set_aside(directories: "LogDirectories", opened: Opened) -> None:
    """One that never was among the broker's logs."""
    one, log = opened.one, opened.log
    with directories.containing(one):
        path = f"{one.path}/{marked(*opened.key, directories.system.new_uuid(), STRAY)}"
        log.close(clean=False)
        _warn(log, path)
        log.move_to(path)
        one.logs.pop(opened.key)
        one.stale.add(opened.key)


def _warn(log: Log, path: str) -> None:
    logger.warning("%s is not of a topic that this fleet has: set aside as %s", log.topic_partition, path)


def reconcile(directories: "LogDirectories", expected: Expected) -> list[TopicPartition]:
    aside: list[TopicPartition] = []
    for key, log in list(directories.logs.items()):
        topic_ids = directories.topic_ids
        with directories.containing(directories.directory_of(log)):
            # Without its file a folder may be of an older topic of that name: only an empty one is taken over.
            if topic_ids.get(key) is None and key in expected and log.end_offset == 0:
                meta.write_topic_id(directories.disk, log.folder, expected[key])
                topic_ids[key] = expected[key]
            elif topic_ids.get(key) != expected.get(key) or key not in expected:
                _warn(log, directories.move_away(key, log, STRAY))
                aside.append(key)
    return aside
