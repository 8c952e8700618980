"""Probes: what is answered, and that nobody can hold the port."""

import asyncio

import pytest
from ottla.net.health import HealthServer, answer


@pytest.mark.parametrize(
    ("line", "problem", "begins"),
    [
        (b"GET /livez HTTP/1.1\r\n", "node 1 starts", b"HTTP/1.1 200 "),
        (b"GET /readyz HTTP/1.1\r\n", "node 1 starts", b"HTTP/1.1 503 "),
        (b"GET /readyz HTTP/1.1\r\n", None, b"HTTP/1.1 200 "),
        (b"GET / HTTP/1.1\r\n", None, b"HTTP/1.1 404 "),
        (b"\r\n", None, b"HTTP/1.1 404 "),
    ],
)
def test_answers(line, problem, begins):
    assert answer(line, lambda: problem).startswith(begins)


def test_the_reason_is_told():
    assert answer(b"GET /readyz HTTP/1.1\r\n", lambda: "broker 3 is fenced").endswith(b"broker 3 is fenced\n")


def test_a_probe_over_the_network():
    async def probe(request: bytes) -> bytes:
        server = HealthServer(0, lambda: None)
        port = await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        received = await reader.read()
        writer.close()
        await server.stop()
        return received

    assert asyncio.run(probe(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")).endswith(b"\r\n\r\nready\n")
    assert asyncio.run(probe(b"x" * 5000)) == b""
