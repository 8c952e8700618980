"""Opens the logs of one log dir at the start, in several threads."""

import asyncio
import uuid
from collections.abc import Callable
from typing import NamedTuple

from ottla.storage.core.names import TopicPartition
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.directory import SLICES, Contents, LogDirectory
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.system import Threads

__all__ = ["Opened", "open_logs"]


class Opened(NamedTuple):
    """A log of a dir, with its entries in the dir's checkpoints."""

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
    """After a crash only the durable part counts as committed: a power loss may bring back truncated records."""
    mark = contents.high_watermarks.get(key)
    return mark if mark is None or contents.clean else min(mark, contents.recovery_points.get(key, 0))
