"""Matching topics by regular expressions away from the loop: a piece at a time, and one expression after the other.

RE2 releases the interpreter's lock while it matches. A piece takes some 10 ms of a thread; turns are taken in the order
of asking, so that an expression that is slow on purpose does not keep others waiting for its end.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from ottla.group.consumer.topic_matching import TopicExpressions
from ottla.metadata.model.image import Image
from ottla.system import Threads

__all__ = ["RegexResolver"]


class RegexResolver:
    """`cpu` counts the seconds that the thread which asks has used: pauses of the process are nobody's fault."""

    def __init__(
        self, threads: Threads, image: Callable[[], Image], *, cpu: Callable[[], float] = time.thread_time
    ) -> None:
        self._threads = threads
        self._image = image
        self._cpu = cpu
        self._turn = asyncio.Lock()
        self.expressions = TopicExpressions()

    async def resolve(self, texts: Iterable[str]) -> None:
        """Until all topics that there are now are matched; `expressions.check` says what is wrong with one."""
        self.expressions.follow(self._image().topics)
        await self._work_off(self.expressions, texts)

    async def select(self, text: str, names: Iterable[str]) -> frozenset[str]:
        """Those of any names that match. KafkaError: INVALID_REGULAR_EXPRESSION."""
        once, given = TopicExpressions(), dict.fromkeys(names)
        once.follow(given)
        await self._work_off(once, [text])
        once.check(text)
        return once.matched(text, given) or frozenset()

    async def _work_off(self, expressions: TopicExpressions, texts: Iterable[str]) -> None:
        for text in texts:
            while expressions.work(text) is not None:
                async with self._turn:
                    work = expressions.work(text)  # somebody else may have done it meanwhile
                    if work is not None:
                        expressions.accept(await self._threads.run(work.done, self._cpu))
