"""Who waits for which offset to be committed."""

import asyncio

from ottla.errors import Code, KafkaError

__all__ = ["Commits"]


class Commits:
    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def wait(self, last_offset: int) -> "asyncio.Future[None]":
        """Done when the high watermark has passed the offset; KafkaError when that will not be known here."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((last_offset, future))
        return future

    def resolve(self, high_watermark: int) -> None:
        still_waiting = []
        for last_offset, future in self._waiting:
            if last_offset >= high_watermark:
                still_waiting.append((last_offset, future))
            elif not future.done():
                future.set_result(None)
        self._waiting = still_waiting

    def fail(self, code: Code) -> None:
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(KafkaError(code))
