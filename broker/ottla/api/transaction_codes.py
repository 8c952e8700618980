"""Codes that older clients of the transaction APIs do not know."""

from ottla.errors import Code

__all__ = ["fenced_as"]


def fenced_as(code: Code, version: int, *, since: int) -> Code:
    """PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to clients from before KIP-588."""
    return Code.invalid_producer_epoch if code is Code.producer_fenced and version < since else code
