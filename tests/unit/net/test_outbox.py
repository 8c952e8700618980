"""Answers of very many small parts: joined, and accounted for by the piece."""

import asyncio
from typing import Any

import pytest
from ottla.net.memory import AnswerMemory
from ottla.net.outbox import PARTS_MAX, PIECE_BYTES_MAX, Outbox
from ottla.net.turns import Turns
from ottla.system import System

PART = b"x" * 10


class Recording(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[list[Any]] = []

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def writelines(self, list_of_data: Any) -> None:
        self.written.append(list(list_of_data))


class Counting(AnswerMemory):
    """How often something changed."""

    changes = 0

    def change(self, by_bytes: int) -> None:
        self.changes += 1
        super().change(by_bytes)


@pytest.mark.parametrize("parts", [1, PARTS_MAX, PARTS_MAX + 1, 10_000, 3 * PIECE_BYTES_MAX // len(PART)])
@pytest.mark.parametrize("is_stalled", [False, True])
def test_very_many_small_parts(parts: int, is_stalled: bool) -> None:
    async def main() -> None:
        transport, memory = Recording(), Counting(1 << 30, lambda: 0.0)
        outbox = Outbox(
            transport,
            threads=System().threads,
            memory=memory,
            turns=Turns(),
            drained=lambda: None,
            failed=lambda reason: None,
        )
        if is_stalled:
            outbox.paused()
        outbox.send([PART] * parts)
        if is_stalled:
            assert memory.held_bytes == outbox.held_bytes == parts * len(PART)
            outbox.resumed()
        for _ in range(100):  # turns of the loop
            await asyncio.sleep(0)
        assert outbox.is_empty
        assert b"".join(b"".join(each) for each in transport.written) == PART * parts
        assert max(map(len, transport.written)) <= PARTS_MAX
        assert memory.held_bytes == outbox.held_bytes == 0
        assert memory.changes <= 10

    asyncio.run(main())
