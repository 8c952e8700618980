"""Clients that are not logged in take no memory from those who are known."""

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest
import uvloop
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from ottla.api.call import Answer, Call
from ottla.errors import Code
from ottla.net.listener_security import ListenerSecurity
from ottla.net.shared import Shared
from ottla.net.strangers import COUNTED_BYTES_MIN, HEADED_BYTES_MAX, StrangerMemory
from ottla.security.authentication import AuthenticationCounts, LoginRules
from ottla.security.core.logins import Login, Step
from ottla.security.core.principals import USER, Principal
from support.connections import shared, talking
from support.frames import encode_request, framed

HEARTBEAT, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 12, 17, 18, 36
FRAME_BYTES_MAX, DEADLINE_S = 512 * 1024, 5.0


class Credulous:
    name = "CREDULOUS"

    def begin(self, host: str) -> "Credulous":
        return self

    async def step(self, data: bytes) -> Step:
        return Step(b"", Login(Principal(USER, "alice"), None))


SECURITY = ListenerSecurity(
    login=LoginRules(
        listener="SASL", mechanisms={"CREDULOUS": Credulous()}, reauth_ms_max={}, delay_s=lambda: 0.0, timeout_s=5.0,
        receive_bytes_max=FRAME_BYTES_MAX, counts=AuthenticationCounts(),
    )
)  # fmt: skip


class Peer:
    closed: str | None = None

    def close(self, reason: str) -> None:
        self.closed = reason


async def handshake(request: object, call: Call) -> Answer:
    assert call.client.authentication is not None
    await call.client.authentication.handshake("CREDULOUS", 1)
    return call.reply(error_code=Code.none, mechanisms=["CREDULOUS"])


async def authenticate(request: object, call: Call) -> Answer:
    assert call.client.authentication is not None
    challenge, _ = await call.client.authentication.step(b"")
    return call.reply(error_code=Code.none, error_message=None, auth_bytes=challenge, session_lifetime_ms=0)


def at_once(request: object, call: Call) -> Answer:
    return call.reply(error_code=Code.none)


def run(test: Callable[[Shared], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await test(shared({HEARTBEAT: at_once, SASL_HANDSHAKE: handshake, SASL_AUTHENTICATE: authenticate}))

    uvloop.run(main())


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def answer(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def test_who_holds_most_has_to_go() -> None:
    memory, (small, large, later) = StrangerMemory(10 * COUNTED_BYTES_MIN), (Peer(), Peer(), Peer())
    memory.hold(small, 2 * COUNTED_BYTES_MIN)
    memory.hold(large, 7 * COUNTED_BYTES_MIN)
    assert memory.held_bytes == 9 * COUNTED_BYTES_MIN
    memory.hold(later, 2 * COUNTED_BYTES_MIN)
    assert large.closed and not small.closed and not later.closed
    assert memory.held_bytes == 4 * COUNTED_BYTES_MIN


def test_one_alone_may_hold_more_and_little_is_not_counted() -> None:
    memory, (alone, other) = StrangerMemory(100), (Peer(), Peer())
    memory.hold(alone, 1 << 20)
    memory.hold(other, COUNTED_BYTES_MIN - 1)
    assert not alone.closed and not other.closed
    memory.hold(alone, 0)
    assert memory.held_bytes == 0


@pytest.mark.parametrize("key", [API_VERSIONS, SASL_HANDSHAKE, HEARTBEAT])
def test_a_large_claim_is_refused_by_its_header(key: int) -> None:
    async def test(common: Shared) -> None:
        async with talking(common, SECURITY) as (reader, writer):
            writer.write(struct.pack(">ih", HEADED_BYTES_MAX + 1, key))
            assert await reader.read() == b""

    run(test)


def test_a_claim_reserves_nothing() -> None:
    """The frame goes on nevertheless; behind the login it is as with everybody."""

    async def test(common: Shared) -> None:
        async with talking(common, SECURITY) as (reader, writer):
            writer.write(framed(encode_request(SaslHandshakeRequest(mechanism="CREDULOUS"))))
            await answer(reader)
            sent = framed(encode_request(SaslAuthenticateRequest(auth_bytes=b"x" * 400_000)))
            writer.write(sent[:100_000])
            await until(lambda: common.strangers.held_bytes == 100_000)
            assert common.requests.used_bytes == 0
            writer.write(sent[100_000:])
            await answer(reader)
            assert common.strangers.held_bytes == 0
            large = framed(encode_request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m" * 30_000)))  # type: ignore[arg-type]
            writer.write(large[:20_000])
            await until(lambda: common.requests.used_bytes == len(large))
            writer.write(large[20_000:])
            await answer(reader)

    run(test)


def test_a_lost_stranger_holds_nothing() -> None:
    async def test(common: Shared) -> None:
        async with talking(common, SECURITY) as (_, writer):
            writer.write(struct.pack(">ih", FRAME_BYTES_MAX, SASL_AUTHENTICATE) + bytes(50_000))
            await until(lambda: common.strangers.held_bytes == 50_006)
            writer.close()
            await until(lambda: common.strangers.held_bytes == 0)

    run(test)
