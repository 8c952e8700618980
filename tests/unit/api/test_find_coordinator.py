"""FindCoordinator of share-partitions: only when share groups are on, only since version 6."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kio.index import load_response_schema
from ottla.api.call import Call
from ottla.api.registry import load_all
from ottla.api.slices import Pace
from ottla.errors import Code
from ottla.metadata.decisions.features import SHARE_VERSION
from support.decisions import Fleet
from support.frames import decode_response

SHARE, KEY = 2, "readers:4vTJHjQzRxGFvlyDC6QmrA:7"


def find(key: str, *, version: int, level: int) -> Any:
    async def leader_of(asked: str) -> int:
        assert asked == key
        return 1

    fleet = Fleet(brokers=2)
    image = SimpleNamespace(brokers=fleet.image.brokers, features={SHARE_VERSION: level})
    shares = SimpleNamespace(leader_of=leader_of)
    node = SimpleNamespace(image=image, share_states=shares, groups=None, transactions=None, pace=Pace())
    api = load_all()[10]
    call = Call(node, api, version, 1, "test", "PLAINTEXT", "localhost")  # type: ignore[arg-type]
    parts = asyncio.run(api.handler(SimpleNamespace(key_type=SHARE, coordinator_keys=[key]), call))  # type: ignore[arg-type]
    (found,) = decode_response(b"".join(map(bytes, parts))[4:], load_response_schema(10, version)).coordinators
    return found


def test_found() -> None:
    found = find(KEY, version=6, level=1)
    assert (found.key, found.node_id, found.error_code) == (KEY, 1, Code.none)


@pytest.mark.parametrize(
    ("key", "version", "level"), [(KEY, 6, 0), (KEY, 5, 1), ("readers", 6, 1), ("x" * 40_000, 6, 1)]
)
def test_not_found(key: str, version: int, level: int) -> None:
    assert find(key, version=version, level=level).error_code == Code.invalid_request
