"""A connection that is lost leaves nothing for the collector, which comes by every few minutes at best."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop
from ottla.net.connection import Connection
from support.connections import shared

DEADLINE_S = 3.0


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("sent", [b"", b"\0\0\1", b"\0\0\0\5half"], ids=["nothing", "half a length", "half a frame"])
@pytest.mark.parametrize("who", ["client", "broker"])
def test_it_is_freed_at_once(sent: bytes, who: str) -> None:
    uvloop.run(come_and_go(sent, closed_by_client=who == "client"))


async def come_and_go(sent: bytes, *, closed_by_client: bool) -> None:
    opened: set[Connection] = set()
    made: list[weakref.ref[Connection]] = []
    common = shared()

    def factory() -> Connection:
        connection = Connection(common, "PLAINTEXT", frame_bytes_max=1000, open_connections=opened)
        made.append(weakref.ref(connection))
        return connection

    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(sent)
    await until(lambda: [each.received_bytes for each in opened] == [len(sent)])
    if closed_by_client:
        writer.close()
    else:
        next(iter(opened)).close("it is the test's turn", quiet=True)
    await until(lambda: not opened)
    await until(lambda: made[0]() is None)
    writer.close()
    server.close()


async def until(is_right: Any) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not is_right():  # noqa: ASYNC110 (what is waited for has no event)
            await asyncio.sleep(0.01)
