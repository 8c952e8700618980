"""Connections of a broker over real sockets, without the rest of the broker."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from ottla.api.binding import Handle
from ottla.api.pacing import LongWork, Pace
from ottla.api.registry import load_all
from ottla.net.connection import Connection
from ottla.net.large_requests import LargeRequests
from ottla.net.listener_security import PLAIN_LISTENER, ListenerSecurity
from ottla.net.memory import AnswerMemory, RequestMemory
from ottla.net.shared import Shared
from ottla.security.core.access import OpenAuthorizer
from ottla.system import RealClock, RealThreads

__all__ = ["shared", "talking"]


def shared(handlers: Mapping[int, Handle] | None = None) -> Shared:
    """As much of a node as its connections need; everybody is let in, and nobody has a quota."""
    load_all()
    let_in: Any = SimpleNamespace(enter=lambda *_: None, leave=lambda *_: None)
    unlimited: Any = SimpleNamespace(connection_pause_ms=lambda *_: 0, any_for_clients=False)
    threads = RealThreads(1)
    answers = AnswerMemory(1 << 20, time.monotonic)
    long_work = LongWork(Pace(), answers, 1 << 20)
    return Shared(
        handlers=handlers or {},
        long_work=long_work,
        clock=RealClock(),
        threads=threads,
        allowances=unlimited,
        authorizer=OpenAuthorizer(),
        admission=let_in,
        requests=RequestMemory(1 << 20),
        answers=answers,
        large_requests=LargeRequests(threads, long_work, elements_max=1000),
    )


@asynccontextmanager
async def talking(
    common: Shared, security: ListenerSecurity = PLAIN_LISTENER
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client's end."""

    def factory() -> Connection:
        return Connection(common, "PLAINTEXT", frame_bytes_max=1 << 20, security=security, open_connections=set())

    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()
