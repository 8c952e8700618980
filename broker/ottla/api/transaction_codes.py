"""Translates codes for older clients of the transaction APIs."""

from ottla.errors import Code

__all__ = ["fenced_as"]


def fenced_as(code: Code, version: int, *, since: int) -> Code:
    """Clients from before KIP-588 get INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED."""
    return Code.invalid_producer_epoch if code is Code.producer_fenced and version < since else code
