"""Starting up: opening the logs that one log dir holds, in several threads."""

import asyncio
import uuid
from collections.abc import Callable
from typing import NamedTuple

from ottla.storage.core.folder_names import TopicPartition
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.directory import SLICES, Contents, LogDirectory
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.system import Threads

__all__ = ["Opened", "open_logs"]


class Opened(NamedTuple):
    """A log as it was found in one of the dirs, with what that dir's checkpoints say of it."""

    directory: LogDirectory
    key: TopicPartition
    log: Log
    topic_id: uuid.UUID | None
    high_watermark: int | None
    cleaned: int | None


async def open_logs(
    one: LogDirectory,
    contents: Contents,
    threads: Threads,
    files: FileCache,
    settings_of: Callable[[str], LogSettings],
) -> list[Opened]:
    slices = [contents.partitions[start::SLICES] for start in range(SLICES)]
    opening = [threads.run(one.open_logs, files, contents, part, settings_of) for part in slices if part]
    found: list[Opened] = []
    for opened in await asyncio.gather(*opening):
        for key, log, topic_id in opened:
            one.add(key, log)
            offsets = _trusted_watermark(contents, key), contents.cleaned.get(key)
            found.append(Opened(one, key, log, topic_id, *offsets))
    return found


def _trusted_watermark(contents: Contents, key: TopicPartition) -> int | None:
    """After a crash only what was durable is surely what was committed: a power loss brings back what was cut off."""
    mark = contents.high_watermarks.get(key)
    return mark if mark is None or contents.clean else min(mark, contents.recovery_points.get(key, 0))
