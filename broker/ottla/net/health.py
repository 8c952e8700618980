"""Answers to probes over HTTP: `/livez` while the event loop turns, `/readyz` when clients are served.

Liveness does not ask for a quorum: a node that waits for others would otherwise be killed while it waits.
"""

import asyncio
from collections.abc import Callable

from ottla.errors import Refusal

__all__ = ["HealthServer", "answer"]

REQUEST_SECONDS_MAX = 2.0
REQUEST_LINE_BYTES_MAX = 1024
STATES = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


def answer(request_line: bytes, problem: Callable[[], str | None]) -> bytes:
    """`problem` says why clients are not served, None when they are. Pure."""
    path = request_line.split(b" ")[1:2]
    if path == [b"/livez"]:
        return _response(200, "alive")
    if path == [b"/readyz"]:
        reason = problem()
        return _response(200, "ready") if reason is None else _response(503, reason)
    return _response(404, "ask for /livez or /readyz")


def _response(code: int, text: str) -> bytes:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {code} {STATES[code]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


class HealthServer:
    def __init__(self, port: int, problem: Callable[[], str | None]) -> None:
        self._port = port
        self._problem = problem
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """The port that was bound; 0 takes a free one."""
        try:
            self._server = await asyncio.start_server(
                self._serve, "0.0.0.0", self._port, limit=REQUEST_LINE_BYTES_MAX, backlog=16
            )
        except OSError as error:
            reason = f"cannot listen for probes on port {self._port}: {error.strerror or error}"
            raise Refusal(f"{reason}; set ottla.health.port") from error
        return int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                line = await reader.readuntil(b"\r\n")
                writer.write(answer(line, self._problem))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asks so asks again
        finally:
            writer.close()

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
