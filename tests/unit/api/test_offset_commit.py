"""OffsetCommit of very many topics."""

import asyncio
import itertools
from typing import Any

from ottla.api.client import Client
from ottla.api.k08_offset_commit import offset_commit
from ottla.api.pacing import LongWork, Pace
from ottla.errors import Code
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.system import RealClock
from ottla.wire.offset_commit import CommitRequest
from support.calls import call_of, decoded

NAMES = 300


class Refusing:
    """Of topics; the group may be read. It notes in which turn of the loop it was asked."""

    def __init__(self) -> None:
        self.turn = 0
        self.asked: list[int] = []

    def may(self, operation: int, resource: int, name: str) -> bool:
        self.asked.append(self.turn)
        return name == "group"

    def next_turn(self) -> None:
        self.turn += 1
        if self.turn < 10 * NAMES:
            asyncio.get_running_loop().call_soon(self.next_turn)


def test_whether_a_client_may_is_asked_in_slices() -> None:
    """A topic that nobody asked about before takes microseconds: 10,000 of them held the loop for 190 ms."""
    asked = CommitRequest("group", -1, "", None, [(f"topic-{number}", [(0, 1, -1, None)]) for number in range(NAMES)])
    access = Refusing()

    async def scene() -> Any:
        call = call_of(8, 8)
        hours = itertools.count(step=3600)
        call.long_work = LongWork(Pace(lambda: float(next(hours))), call.long_work.answers, 1 << 30)
        call.is_large = True
        call.client = Client("PLAINTEXT", "localhost")
        call.client.access, call.client.is_unrestricted = access, False  # type: ignore[assignment]
        access.next_turn()
        answer = offset_commit(asked, call, None, MetadataFeed("MkU3OEVBNTcwNTJENDM2Qk"), None, RealClock())  # type: ignore[arg-type]
        assert not isinstance(answer, list)
        made = await answer  # type: ignore[misc]
        call.close()
        return decoded(made, call)

    answer = asyncio.run(scene())
    codes = {part.error_code for topic in answer.topics for part in topic.partitions}
    assert codes == {Code.topic_authorization_failed} and len(answer.topics) == NAMES
    turns = set(access.asked)
    assert len(turns) > NAMES // 2, "each slice was over at once, and yet one turn asked for many"
