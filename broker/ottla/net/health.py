"""Answers over HTTP, from the control loop: `/livez` unless the data loop is stuck for good, `/readyz` when clients are
served, `/metrics` for Prometheus.

Liveness does not ask for a quorum: a node that waits for others would otherwise be killed while it waits.
"""

import asyncio
from collections.abc import Awaitable, Callable

from ottla.errors import Refusal
from ottla.telemetry.core.exposition import CONTENT_TYPE

__all__ = ["HealthServer", "answer"]

REQUEST_SECONDS_MAX = 5.0
METRICS = b"/metrics"
PLAIN = "text/plain; charset=utf-8"
REQUEST_LINE_BYTES_MAX = 1024
STATES = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


Problem = Callable[[], str | None]


def answer(request_line: bytes, *, not_alive: Problem, not_ready: Problem) -> bytes:
    """Both say what is wrong, None when nothing is. Pure."""
    path = path_of(request_line)
    if path == b"/livez":
        return _verdict("alive", not_alive())
    if path == b"/readyz":
        return _verdict("ready", not_ready())
    return _response(404, b"ask for /livez, /readyz or /metrics\n")


def path_of(request_line: bytes) -> bytes:
    """Without a query. Pure."""
    words = request_line.split(b" ")
    return words[1].partition(b"?")[0] if len(words) > 1 else b""


def _verdict(good: str, problem: str | None) -> bytes:
    code, text = (200, good) if problem is None else (503, problem)
    return _response(code, f"{text}\n".encode())


def _response(code: int, body: bytes, content_type: str = PLAIN) -> bytes:
    head = f"HTTP/1.1 {code} {STATES[code]}\r\nContent-Type: {content_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


class HealthServer:
    def __init__(
        self, port: int, *, not_alive: Problem, not_ready: Problem, metrics: Callable[[], Awaitable[bytes]]
    ) -> None:
        self._port = port
        self._metrics = metrics
        self._not_alive = not_alive
        self._not_ready = not_ready
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
                if path_of(line) == METRICS:
                    writer.write(_response(200, await self._metrics(), CONTENT_TYPE))
                else:
                    writer.write(answer(line, not_alive=self._not_alive, not_ready=self._not_ready))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asks so asks again
        finally:
            writer.close()

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
