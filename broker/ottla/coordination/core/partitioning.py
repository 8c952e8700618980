"""Which partition of its topic keeps a group or a transactional id: Java's String.hashCode, as Kafka's tools. Pure."""

import sys
from array import array
from functools import lru_cache

__all__ = ["partition_of"]

HASHES_KEPT_MAX = 65_536
KEPT_CHARACTERS_MAX = 256  # of a text whose hash is kept, and the text with it
INT_MIN = -(2**31)


def partition_of(key: str, partitions: int) -> int:
    hashed = _kept_hash(key) if len(key) <= KEPT_CHARACTERS_MAX else _positive_hash(key)
    return hashed % partitions


def _positive_hash(text: str) -> int:
    """Time is linear in the length: 2 ms for the longest text that a record can hold."""
    value = 0
    units = array("H", text.encode("utf-16-be", "surrogatepass"))
    if sys.byteorder == "little":
        units.byteswap()
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return 0 if signed == INT_MIN else abs(signed)


_kept_hash = lru_cache(maxsize=HASHES_KEPT_MAX)(_positive_hash)
