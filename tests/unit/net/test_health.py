"""Probes: what is answered, and that nobody can hold the port."""

import asyncio

import pytest
from ottla.net.health import HealthServer, answer


@pytest.mark.parametrize(
    ("line", "not_alive", "not_ready", "begins"),
    [
        (b"GET /livez HTTP/1.1\r\n", None, "node 1 starts", b"HTTP/1.1 200 "),
        (b"GET /livez HTTP/1.1\r\n", "its data loop is stuck", None, b"HTTP/1.1 503 "),
        (b"GET /readyz HTTP/1.1\r\n", None, "node 1 starts", b"HTTP/1.1 503 "),
        (b"GET /readyz HTTP/1.1\r\n", None, None, b"HTTP/1.1 200 "),
        (b"GET / HTTP/1.1\r\n", None, None, b"HTTP/1.1 404 "),
        (b"\r\n", None, None, b"HTTP/1.1 404 "),
    ],
)
def test_answers(line, not_alive, not_ready, begins):
    assert answer(line, not_alive=lambda: not_alive, not_ready=lambda: not_ready).startswith(begins)


def test_the_reason_is_told():
    told = answer(b"GET /readyz HTTP/1.1\r\n", not_alive=lambda: None, not_ready=lambda: "broker 3 is fenced")
    assert told.endswith(b"broker 3 is fenced\n")


async def metrics() -> bytes:
    return b"up 1\n"


def test_a_probe_over_the_network():
    async def probe(request: bytes) -> bytes:
        server = HealthServer(0, not_alive=lambda: None, not_ready=lambda: None, metrics=metrics)
        port = await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        received = await reader.read()
        writer.close()
        await server.stop()
        return received

    assert asyncio.run(probe(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")).endswith(b"\r\n\r\nready\n")
    assert asyncio.run(probe(b"x" * 5000)) == b""
    told = asyncio.run(probe(b"GET /metrics?x=1 HTTP/1.1\r\n\r\n"))
    assert told.startswith(b"HTTP/1.1 200 ") and b"version=0.0.4" in told and told.endswith(b"\r\n\r\nup 1\n")
