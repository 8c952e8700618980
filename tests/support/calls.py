"""Handlers called without a connection, with the parts that they name."""

from collections.abc import Callable
from typing import Any

from kio.index import load_response_schema
from kio.serial import entity_reader
from ottla.api.call import Answer, Call
from ottla.api.client import Client
from ottla.api.pacing import LongWork, Pace
from ottla.api.registry import load_all
from support.answers import settled
from support.frames import decode_response, encode_request

__all__ = ["call_of", "decoded", "handle", "read"]


class Plenty:
    """As much memory for answers as anybody wants."""

    def change(self, by_bytes: int) -> None:
        pass

    async def until_plenty(self) -> None:
        pass


def call_of(key: int, version: int, on_close: dict[object, Callable[[], None]] | None = None) -> Call:
    work = LongWork(Pace(), Plenty(), 1 << 30)
    return Call(work, load_all()[key], version, 1, "test", Client("PLAINTEXT", "localhost"), on_close)


async def handle(message: Any, call: Call, **parts: Any) -> Any:
    """The answer as kio reads it. Of `parts` the handler gets those that it names."""
    needs = {name: parts[name] for name in call.api.needs}
    return decoded(await settled(call.api.handler(message, call, **needs)), call)


def decoded(answer: Answer, call: Call) -> Any:
    assert answer is not None
    return decode_response(b"".join(map(bytes, answer))[4:], load_response_schema(call.api.key, call.version))


def read(request: Any) -> Any:
    """kio's request as its handler gets it."""
    payload = encode_request(request)
    _, header_size = entity_reader(request.__header_schema__)(payload, 0)
    message, end = load_all()[request.__api_key__].reader(request.__version__)(memoryview(payload), header_size)
    assert end == len(payload)
    return message
