"""Subscriptions of classic consumers, as the broker reads them: however they are made, it takes no time."""

import struct
from typing import Any

import pytest
from ottla.group.classic.embedded_protocol import SUBSCRIPTION_BYTES_MAX, read_subscription
from ottla.group.classic.protocols import TOPICS_MAX, subscribed_topics
from ottla.wire.reader import Malformed


class Member:
    def __init__(self, subscription: bytes) -> None:
        self._subscription = subscription

    def metadata(self, _: str | None) -> bytes:
        return self._subscription


def topics_of(subscription: bytes) -> frozenset[str] | None:
    member: Any = Member(subscription)
    return subscribed_topics([member], "range")


def subscription(*names: bytes, count: int | None = None) -> bytes:
    head = struct.pack(">hi", 0, len(names) if count is None else count)
    return head + b"".join(struct.pack(">h", len(name)) + name for name in names) + struct.pack(">i", -1)


def test_topics_are_read() -> None:
    assert topics_of(subscription(b"orders", b"clicks")) == {"orders", "clicks"}
    assert topics_of(subscription()) == frozenset()


@pytest.mark.parametrize(
    "data",
    [
        subscription(b""),
        subscription(count=2**31 - 1),
        struct.pack(">hi", 0, 8_000_000) + bytes(16_000_000),
        subscription(*([b"t"] * (TOPICS_MAX + 1))),
    ],
    ids=["no name", "claims many", "millions of empty names", "too many"],
)
def test_what_no_consumer_sends_is_not_read(data: bytes) -> None:
    """Millions of empty names held the loop for six seconds."""
    assert topics_of(data) is None


def test_a_mixed_group_does_not_read_everything() -> None:
    with pytest.raises(Malformed, match="at most"):
        read_subscription(subscription(b"t") + bytes(SUBSCRIPTION_BYTES_MAX))
