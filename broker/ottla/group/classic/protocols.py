"""Which protocol a classic group speaks, and which topics its members subscribe to. Pure."""

import struct
from collections import Counter
from collections.abc import Collection, Iterable

from ottla.group.classic.member import Member

__all__ = ["CONSUMER", "chosen", "common", "subscribed_topics"]

CONSUMER = "consumer"
TOPICS_MAX = 50_000  # of one subscription
TOPIC_BYTES_MIN = 3  # its length, and a character
INT16, INT32 = struct.Struct(">h"), struct.Struct(">i")


def common(members: Collection[Member]) -> set[str]:
    """The protocols that all members support."""
    known = Counter(name for member in members for name in {name for name, _ in member.protocols})
    return {name for name, count in known.items() if count == len(members)}


def chosen(members: Collection[Member]) -> str:
    """Each member votes for the first of its protocols that all support. Most votes win; the first voted for on a
    tie."""
    candidates = common(members)
    votes = Counter(next(name for name, _ in member.protocols if name in candidates) for member in members)
    return votes.most_common(1)[0][0]


def subscribed_topics(members: Iterable[Member], protocol: str | None) -> frozenset[str] | None:
    """Topics of a group of consumers; None when some member's metadata is not a consumer's subscription."""
    topics: set[str] = set()
    for member in members:
        try:
            topics |= _topics(member.metadata(protocol))
        except (struct.error, UnicodeDecodeError, ValueError):
            return None
    return frozenset(topics)


def _topics(subscription: bytes) -> set[str]:
    """Every version of the subscription starts with its version and the topics."""
    (count,) = INT32.unpack_from(subscription, 2)
    position, found = 6, set()
    if not 0 <= count <= min(TOPICS_MAX, len(subscription) // TOPIC_BYTES_MIN):
        raise ValueError(f"a subscription claims {count} topics in {len(subscription)} bytes")
    for _ in range(count):
        (size,) = INT16.unpack_from(subscription, position)
        end = position + 2 + size
        if size <= 0 or end > len(subscription):
            raise ValueError("a topic has an empty name, or a name longer than the rest of the subscription")
        found.add(subscription[position + 2 : end].decode())
        position = end
    return found
