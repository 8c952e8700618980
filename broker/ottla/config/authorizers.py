"""Which authorizer is asked for, and who is above it. Pure."""

from collections.abc import Mapping
from typing import Any

from ottla.errors import Refusal

__all__ = ["check_authorizer", "super_users_of", "warn_of_authorizer"]

CLASS = "authorizer.class.name"
SUPER_USERS = "super.users"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OF_ZOOKEEPER = "kafka.security.authorizer.AclAuthorizer"


def super_users_of(text: str) -> frozenset[str]:
    """`User:admin;User:CN=broker,O=acme`. ValueError names the part that is no principal."""
    names = [part.strip() for part in text.split(";")]
    for name in filter(None, names):
        kind, _, rest = name.partition(":")
        if not (kind and rest):
            raise ValueError(f"expected a string in format principalType:principalName but got {name}")
    return frozenset(filter(None, names))


def check_authorizer(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """A fleet must not seem guarded when it is not."""
    name = values[CLASS].strip()
    if name not in ("", STANDARD, OF_ZOOKEEPER):
        raise Refusal(
            f"{origins[CLASS]}: {CLASS}={name}: Ottla has no such authorizer; use {STANDARD}, or leave it empty: then "
            "everybody who reaches it may do everything"
        )
    try:
        super_users_of(values[SUPER_USERS])
    except ValueError as error:
        raise Refusal(f"{origins[SUPER_USERS]}: {SUPER_USERS}={values[SUPER_USERS]}: {error}") from None


def warn_of_authorizer(values: Mapping[str, Any], origins: Mapping[str, str]) -> list[str]:
    if values[CLASS].strip() != OF_ZOOKEEPER:
        return []
    return [f"{origins[CLASS]}: {CLASS}={OF_ZOOKEEPER} kept ACLs in ZooKeeper: they are in the metadata now, as with"
            f" {STANDARD}"]  # fmt: skip
