"""What somebody may do to what: Kafka's numbers, and the question that handlers ask. Pure."""

from enum import IntEnum
from typing import Protocol

from ottla.security.core.principals import Principal

__all__ = ["CLUSTER_NAME", "EVERYTHING", "Access", "Authorizer", "OpenAuthorizer", "Operation", "Resource"]

CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


class Operation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Resource(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Access(Protocol):
    """Of one principal from one host. An answer holds until the rules change."""

    def may(self, operation: Operation, resource: Resource, name: str) -> bool: ...

    def may_any(self, operation: Operation, resource: Resource) -> bool:
        """To at least one resource of this type, named or not (Kafka's authorizeByResourceType)."""


class Authorizer(Protocol):
    @property
    def is_open(self) -> bool:
        """Everybody may do everything: nobody needs to ask."""

    def access_of(self, principal: Principal, host: str) -> Access: ...


class _Everything:
    def may(self, operation: Operation, resource: Resource, name: str) -> bool:
        return True

    def may_any(self, operation: Operation, resource: Resource) -> bool:
        return True


EVERYTHING: Access = _Everything()


class OpenAuthorizer:
    """Where authorizer.class.name is empty."""

    is_open = True

    def access_of(self, principal: Principal, host: str) -> Access:
        return EVERYTHING
