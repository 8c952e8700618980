"""Which quota holds for whom, with Kafka's precedence. Pure.

Who is measured together follows from the quota that holds: one for a user is shared by all clients of that user, one
for a client id by all users; a default holds for each one separately.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.metadata.decisions.client_quotas import CLIENT_ID, IP, USER
from ottla.metadata.model.state import QuotaEntity

__all__ = ["Limit", "client_limit", "connection_limit"]

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class Limit(NamedTuple):
    """`measured`: (user, client id) that are measured together; empty where it does not matter."""

    value: float
    measured: tuple[str, str]


def client_limit(quotas: Quotas, key: str, *, user: str, client_id: str) -> Limit | None:
    both, only_user, only_client = (user, client_id), (user, ""), ("", client_id)
    for entity, measured in (
        (((CLIENT_ID, client_id), (USER, user)), both),
        (((CLIENT_ID, None), (USER, user)), both),
        (((USER, user),), only_user),
        (((CLIENT_ID, client_id), (USER, None)), both),
        (((CLIENT_ID, None), (USER, None)), both),
        (((USER, None),), only_user),
        (((CLIENT_ID, client_id),), only_client),
        (((CLIENT_ID, None),), only_client),
    ):
        found = quotas.get(entity)
        if found is not None and key in found:
            return Limit(found[key], measured)
    return None


def connection_limit(quotas: Quotas, address: str) -> float | None:
    """Connections per second from this address."""
    for entity in (((IP, address),), ((IP, None),)):
        found = quotas.get(entity)
        if found is not None:
            return found.get("connection_creation_rate")
    return None
