"""Access control lists as the metadata keeps them: one binding of somebody to something. Pure.

Kafka's numbers throughout; those of operations and resources are named in `security.core.access`.
"""

import hashlib
import uuid
from enum import IntEnum

import msgspec

__all__ = ["AclBinding", "PatternType", "Permission"]


class PatternType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(msgspec.Struct, frozen=True, gc=False):
    """`principal` may (or must not) do `operation` to the resources of this type that the pattern fits."""

    resource_type: int
    pattern_type: int
    resource_name: str
    principal: str
    host: str
    operation: int
    permission: int

    @property
    def id(self) -> uuid.UUID:
        """Follows from the content, so that a binding that exists is found without a search."""
        return uuid.UUID(bytes=hashlib.sha256(msgspec.msgpack.encode(self)).digest()[:16])
