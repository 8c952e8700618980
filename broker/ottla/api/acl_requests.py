"""What the three APIs of ACLs share: their numbers, and what is refused before anything is looked up."""

from collections.abc import Mapping
from typing import Any, Protocol

from ottla.metadata.decisions.commands import AclFilter
from ottla.metadata.model.acls import AclBinding
from ottla.wire.reader import Malformed

__all__ = ["NO_AUTHORIZER", "FilterFields", "acl_filter_of", "described", "refuse_unknown"]

NO_AUTHORIZER = "No Authorizer is configured."
UNKNOWN = 0


class FilterFields(Protocol):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def acl_filter_of(asked: FilterFields) -> AclFilter:
    refuse_unknown(
        asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type, of="The filter"
    )
    return AclFilter(
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.resource_name_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def refuse_unknown(*numbers: int, of: str) -> None:
    """Malformed, as Kafka's own reader says: the connection is closed."""
    if UNKNOWN in numbers:
        raise Malformed(f"{of} contains UNKNOWN elements")


def described(binding: AclBinding) -> Mapping[str, Any]:
    """The part of an answer about who may do what."""
    return {
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation,
        "permission_type": binding.permission,
    }
