"""Matches topics with regular expressions in a thread, piece by piece.

RE2 releases the interpreter's lock while it matches. A piece takes about 10 ms; waiting expressions take turns in
arrival order, so an expression that is slow on purpose does not block the others. Whether a member may describe what
was matched is asked on the loop, in slices, once for all members of a group with the same expression.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from ottla.group.consumer.topic_matching import TopicExpressions
from ottla.group.consumer.visible_topics import VisibleTopics
from ottla.metadata.model.image import Image
from ottla.system import Threads

__all__ = ["RegexResolver"]

NAMES_PER_SLICE = 500  # of the loop: some µs each


class RegexResolver:
    """`is_open`: there is no authorizer. `cpu` returns the CPU seconds of the calling thread, so that pauses of the
    process do not count."""

    def __init__(
        self,
        threads: Threads,
        image: Callable[[], Image],
        *,
        is_open: bool = True,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._threads = threads
        self._image = image
        self._cpu = cpu
        self._turn = asyncio.Lock()
        self._asking = asyncio.Lock()
        self.expressions = TopicExpressions()
        self.visible = VisibleTopics(self.expressions, acls=lambda: image().acls, is_open=is_open)

    async def resolve(self, texts: Iterable[str]) -> None:
        """Match all current topics; afterwards `expressions.check` raises for an invalid expression."""
        self.expressions.follow(self._image().topics)
        await self._match_all(self.expressions, texts)

    async def authorize(self, group_id: str, text: str, may_describe: Callable[[str], bool], *, is_new: bool) -> None:
        """Ask for the topics that the expression matches, if topics or ACLs have changed since they were asked for, or
        if it is new to the group."""
        if self.visible.unseen(group_id, text, self._image().topics, is_new=is_new) is None:
            return
        async with self._asking:
            unseen = self.visible.unseen(group_id, text, self._image().topics, is_new=is_new)
            if unseen is None:
                return  # another member of the group has asked
            names, hidden = list(unseen.matched), list[str]()
            for begin in range(0, len(names), NAMES_PER_SLICE):
                hidden += [name for name in names[begin : begin + NAMES_PER_SLICE] if not may_describe(name)]
                await asyncio.sleep(0)
            self.visible.accept(group_id, text, unseen, frozenset(hidden))

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
