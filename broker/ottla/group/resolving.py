"""Matches topics with regular expressions in a thread, piece by piece.

RE2 releases the interpreter's lock while it matches. A piece takes about 10 ms; waiting expressions take turns in
arrival order, so an expression that is slow on purpose does not block the others.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from ottla.group.consumer.topic_matching import TopicExpressions
from ottla.metadata.model.image import Image
from ottla.system import Threads

__all__ = ["RegexResolver"]


class RegexResolver:
    """`cpu` returns the CPU seconds of the calling thread, so that pauses of the process do not count."""

    def __init__(
        self, threads: Threads, image: Callable[[], Image], *, cpu: Callable[[], float] = time.thread_time
    ) -> None:
        self._threads = threads
        self._image = image
        self._cpu = cpu
        self._turn = asyncio.Lock()
        self.expressions = TopicExpressions()

    async def resolve(self, texts: Iterable[str]) -> None:
        """Match all current topics; afterwards `expressions.check` raises for an invalid expression."""
        self.expressions.follow(self._image().topics)
        await self._match_all(self.expressions, texts)

    async def select(self, text: str, names: Iterable[str]) -> frozenset[str]:
        """Those of these names that match. KafkaError: INVALID_REGULAR_EXPRESSION."""
        once, given = TopicExpressions(), dict.fromkeys(names)
        once.follow(given)
        await self._match_all(once, [text])
        once.check(text)
        return once.matched(text, given) or frozenset()

    async def _match_all(self, expressions: TopicExpressions, texts: Iterable[str]) -> None:
        for text in texts:
            while expressions.work(text) is not None:
                async with self._turn:
                    work = expressions.work(text)  # another request may have done it meanwhile
                    if work is not None:
                        expressions.accept(await self._threads.run(work.done, self._cpu))
