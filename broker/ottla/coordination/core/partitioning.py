"""Which partition of its topic keeps a group or a transactional id: Java's String.hashCode, as Kafka's tools. Pure."""

from functools import lru_cache

__all__ = ["partition_of"]

HASHES_KEPT_MAX = 65_536
INT_MIN = -(2**31)


def partition_of(key: str, partitions: int) -> int:
    return _positive_hash(key) % partitions


@lru_cache(maxsize=HASHES_KEPT_MAX)
def _positive_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (value * 31 + (units[index] << 8) + units[index + 1]) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return 0 if signed == INT_MIN else abs(signed)
