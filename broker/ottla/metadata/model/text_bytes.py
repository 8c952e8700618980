"""How much memory the texts that clients leave in the metadata take, on every node and in every snapshot. Pure.

Topics are not among them: their names are short, and the fleet has a limit of partitions.
"""

from collections.abc import Iterable, Mapping

from ottla.metadata.model.acls import AclBinding
from ottla.metadata.model.credentials import ScramOwner
from ottla.metadata.model.state import ConfigResource, QuotaEntity
from ottla.metadata.model.tokens import DelegationToken

__all__ = ["RECORD_BYTES", "acl_bytes", "credential_bytes", "quota_bytes", "setting_bytes", "token_bytes"]

OWNER_BYTES = 400  # of a resource with settings or an entity with quotas, apart from its texts
VALUE_BYTES = 100  # of one of its values
RECORD_BYTES = OWNER_BYTES + VALUE_BYTES
"""No record adds more than this and its own size."""


def setting_bytes(resource: ConfigResource, settings: Mapping[str, str]) -> int:
    return _owned_bytes([resource[1]], [*settings, *settings.values()], len(settings))


def quota_bytes(entity: QuotaEntity, quotas: Mapping[str, float]) -> int:
    return _owned_bytes([name for _, name in entity], quotas, len(quotas))


def acl_bytes(binding: AclBinding) -> int:
    return _size([binding.resource_name, binding.principal, binding.host])


def credential_bytes(owner: ScramOwner) -> int:
    return _size([owner[0]])


def token_bytes(token: DelegationToken) -> int:
    return _size([token.owner, token.requester, *token.renewers])


def _owned_bytes(names: Iterable[str | None], texts: Iterable[str], count: int) -> int:
    """Who has no values left is not kept."""
    return OWNER_BYTES + _size(names) + _size(texts) + VALUE_BYTES * count if count else 0


def _size(texts: Iterable[str | None]) -> int:
    return sum(len(text) if text.isascii() else len(text.encode()) for text in texts if text)
