"""Answers over HTTP, from the control loop: `/livez` unless the data loop is stuck for good, `/readyz` when clients are
served, `/metrics` for Prometheus.

Liveness does not ask for a quorum: a node that waits for others would otherwise be killed while it waits.
"""

import asyncio
from collections.abc import Awaitable, Callable

from ottla.errors import Refusal
from ottla.net.metrics_access import MetricsAccess
from ottla.telemetry.core.exposition import CONTENT_TYPE

__all__ = ["HealthServer", "answer"]

REQUEST_SECONDS_MAX = 5.0
METRICS = b"/metrics"
PLAIN = "text/plain; charset=utf-8"
REQUEST_LINE_BYTES_MAX = 1024
HEADERS_MAX = 50
STATES = {200: "OK", 403: "Forbidden", 404: "Not Found", 503: "Service Unavailable"}


Problem = Callable[[], str | None]


def answer(request_line: bytes, *, not_alive: Problem, not_ready: Problem, is_bare: bool = False) -> bytes:
    """Both say what is wrong, None when nothing is; `is_bare`: that is told to nobody. Pure."""
    path = path_of(request_line)
    if path == b"/livez":
        return _verdict("alive", not_alive(), is_bare)
    if path == b"/readyz":
        return _verdict("ready", not_ready(), is_bare)
    return _response(404, b"ask for /livez, /readyz or /metrics\n")


def path_of(request_line: bytes) -> bytes:
    """Without a query. Pure."""
    words = request_line.split(b" ")
    return words[1].partition(b"?")[0] if len(words) > 1 else b""


def _verdict(good: str, problem: str | None, is_bare: bool) -> bytes:
    code, text = (200, good) if problem is None else (503, f"not {good}" if is_bare else problem)
    return _response(code, f"{text}\n".encode())


def _response(code: int, body: bytes, content_type: str = PLAIN) -> bytes:
    head = f"HTTP/1.1 {code} {STATES[code]}\r\nContent-Type: {content_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


class HealthServer:
    def __init__(
        self,
        port: int,
        *,
        not_alive: Problem,
        not_ready: Problem,
        metrics: Callable[[], Awaitable[bytes]],
        access: MetricsAccess = MetricsAccess(),  # noqa: B008 - it has no state
    ) -> None:
        self._port = port
        self._access = access
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
                writer.write(await self._answer(line, reader, writer))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asks so asks again
        finally:
            writer.close()

    async def _answer(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        if path_of(line) != METRICS:
            is_bare = self._access.is_secured
            return answer(line, not_alive=self._not_alive, not_ready=self._not_ready, is_bare=is_bare)
        host = (writer.get_extra_info("peername") or ("",))[0]
        if not await self._access.allows(host, await _authorization(reader)):
            return _response(403, b"not for you\n")
        return _response(200, await self._metrics(), CONTENT_TYPE)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()


async def _authorization(reader: asyncio.StreamReader) -> bytes:
    """The header's value; empty when there is none among the first HEADERS_MAX."""
    for _ in range(HEADERS_MAX):
        name, _, value = (await reader.readuntil(b"\r\n")).partition(b":")
        if not name.strip():
            break
        if name.strip().lower() == b"authorization":
            return value.strip()
    return b""
