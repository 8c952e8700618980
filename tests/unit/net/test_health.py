"""Probes: what is answered, and that nobody can hold the port."""

import asyncio

import pytest
from ottla.net.health import HealthServer, answer
from ottla.net.metrics_access import MetricsAccess

OPEN = MetricsAccess()


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


def test_a_secured_node_gives_no_reason():
    for line, bare in ((b"GET /readyz HTTP/1.1\r\n", b"not ready\n"), (b"GET /livez HTTP/1.1\r\n", b"not alive\n")):
        told = answer(line, not_alive=lambda: "stuck", not_ready=lambda: "broker 3 is fenced", is_bare=True)
        assert told.startswith(b"HTTP/1.1 503 ") and told.partition(b"\r\n\r\n")[2] == bare


def test_metrics_are_for_those_who_may(tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length\n")
    near, far = "127.0.0.1", "192.0.2.7"
    good, bad = b"Bearer a-token-of-some-length", b"Bearer another-of-some-length"

    async def seen(access: MetricsAccess, authorization: bytes = b"") -> list[str]:
        return [host for host in (near, "::1", far, "") if await access.allows(host, authorization)]

    async def scene() -> None:
        assert await seen(MetricsAccess()) == [near, "::1", far, ""]
        assert await seen(MetricsAccess(True)) == [near, "::1"]
        for secured in (False, True):
            with_token = MetricsAccess(secured, str(token))
            assert await seen(with_token, good) == [near, "::1", far, ""]
            for other in (bad, b"", good[:-1], b"Basic " + good[7:], good[7:], "Bearer ä".encode()):
                assert await seen(with_token, other) == []
        token.write_text("another-of-some-length")
        assert await seen(with_token, bad) == [near, "::1", far, ""], "the new token, at once"
        for broken in ("short", ""):
            token.write_text(broken)
            assert await seen(with_token, f"Bearer {broken}".encode()) == []

    asyncio.run(scene())


async def metrics() -> bytes:
    return b"up 1\n"


def test_a_probe_over_the_network(tmp_path):
    async def probe(request: bytes, access: MetricsAccess = OPEN) -> bytes:
        server = HealthServer(0, not_alive=lambda: None, not_ready=lambda: None, metrics=metrics, access=access)
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
    (tmp_path / "token").write_text("a-token-of-some-length")
    access = MetricsAccess(True, str(tmp_path / "token"))
    refused = asyncio.run(probe(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", access))
    assert refused.startswith(b"HTTP/1.1 403 ") and b"up 1" not in refused
    with_token = b"GET /metrics HTTP/1.1\r\nHost: x\r\nauthorization:  bearer a-token-of-some-length\r\n\r\n"
    assert asyncio.run(probe(with_token, access)).endswith(b"\r\n\r\nup 1\n")
    assert asyncio.run(probe(b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 60, access)).startswith(b"HTTP/1.1 403 ")
