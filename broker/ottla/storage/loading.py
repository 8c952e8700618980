"""Starting up: opening what the log dirs hold, and setting aside what is not ours."""

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.errors import Refusal
from ottla.storage import directory, meta
from ottla.storage.directory import SLICES, LogDirectory
from ottla.storage.folder_names import STRAY, TopicPartition
from ottla.storage.settings import LogSettings

if TYPE_CHECKING:
    from ottla.storage.directories import LogDirectories

__all__ = ["open_all", "reconcile"]

logger = logging.getLogger(__name__)


async def open_all(directories: "LogDirectories", settings_of: Callable[[str], LogSettings]) -> None:
    await asyncio.gather(*(_open_directory(directories, one, settings_of) for one in directories.online))
    for one in directories.online:
        for key, log in one.logs.items():
            if key in directories.logs:
                raise Refusal(f"{directories.logs[key].folder} and {log.folder} hold the same partition; remove one")
            directories.logs[key] = log


async def _open_directory(
    directories: "LogDirectories", one: LogDirectory, settings_of: Callable[[str], LogSettings]
) -> None:
    system = directories.system
    with directories.containing(one):
        contents = await system.threads.run(directory.survey, system, one)
        directories.doomed.extend((0, path) for path in contents.deleted)
        directories.high_watermarks.update(contents.high_watermarks)
        directories.cleaned.update(contents.cleaned)
        slices = [contents.partitions[start::SLICES] for start in range(SLICES)]
        opening = [
            system.threads.run(directory.open_logs, system, directories.files, one, contents, part, settings_of)
            for part in slices
            if part
        ]
        for opened in await asyncio.gather(*opening):
            for key, log, topic_id in opened:
                one.logs[key] = log
                directories.topic_ids[key] = topic_id


def reconcile(directories: "LogDirectories", expected: Mapping[TopicPartition, uuid.UUID]) -> list[TopicPartition]:
    aside: list[TopicPartition] = []
    for key, log in list(directories.logs.items()):
        topic_ids = directories.topic_ids
        with directories.containing(directories.directory_of(log)):
            if topic_ids.get(key) is None and key in expected:  # lost with the power; the name must do
                meta.write_topic_id(directories.disk, log.folder, expected[key])
                topic_ids[key] = expected[key]
            elif topic_ids.get(key) != expected.get(key) or key not in expected:
                path = directories.move_away(key, log, STRAY)
                logger.warning("%s is not of a topic that this fleet has: set aside as %s", log.folder, path)
                aside.append(key)
    return aside
