"""A refused version is named with what helps: who sent it, what is served, which clients are too old."""

import struct

import ottla.api.registry as registry
import pytest
from ottla.net.not_served import not_served

registry.load_all()


def said(key: int, version: int, client: bytes | None) -> str:
    size = -1 if client is None else len(client)
    frame = struct.pack(">hhih", key, version, 7, size) + (client or b"")
    return not_served(registry.APIS.get(key), version, memoryview(frame), size)


@pytest.mark.parametrize(("key", "version", "served"), [(0, 2, "v3 to v13"), (1, 3, "v4 to v18")])
def test_clients_before_kafka_0_11_are_named(key: int, version: int, served: str) -> None:
    assert said(key, version, b"old") == (
        f"a version that is not served ({served} are; it needs Kafka 0.11 or newer clients), sent by client id 'old',"
    )


def test_others_are_told_what_is_served() -> None:
    assert said(0, 99, None) == "a version that is not served (v3 to v13 are)"
    assert said(999, 0, b"\xff") == "an API that is not served, sent by client id '\ufffd',"
    assert len(said(999, 0, b"x" * 30_000)) < 300
