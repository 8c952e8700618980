"""Who a client is. Pure."""

from typing import NamedTuple

__all__ = ["ANONYMOUS", "USER", "Principal"]

USER = "User"


class Principal(NamedTuple):
    """As Kafka writes it: `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Whoever came without a certificate or a login."""
