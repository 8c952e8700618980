"""FindCoordinator of share-partitions: only when share groups are on, only since version 6."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.errors import Code
from ottla.metadata.decisions.features import SHARE_VERSION
from support.calls import call_of, handle
from support.decisions import Fleet

SHARE, KEY = 2, "readers:4vTJHjQzRxGFvlyDC6QmrA:7"


def find(key: str, *, version: int, level: int) -> Any:
    async def leader_of(asked: str) -> int:
        assert asked == key
        return 1

    fleet = Fleet(brokers=2)
    image = SimpleNamespace(brokers=fleet.image.brokers, features={SHARE_VERSION: level})
    shares = SimpleNamespace(leader_of=leader_of)
    request = SimpleNamespace(key_type=SHARE, coordinator_keys=[key])
    parts = {"feed": SimpleNamespace(image=image), "share_states": shares, "groups": None, "transactions": None}
    (found,) = asyncio.run(handle(request, call_of(10, version), **parts)).coordinators
    return found


def test_found() -> None:
    found = find(KEY, version=6, level=1)
    assert (found.key, found.node_id, found.error_code) == (KEY, 1, Code.none)


@pytest.mark.parametrize(
    ("key", "version", "level"), [(KEY, 6, 0), (KEY, 5, 1), ("readers", 6, 1), ("x" * 40_000, 6, 1)]
)
def test_not_found(key: str, version: int, level: int) -> None:
    assert find(key, version=version, level=level).error_code == Code.invalid_request
