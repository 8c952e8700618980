"""Who a certificate of a fleet belongs to, as the URI in it says: ottla://CLUSTER-ID/ROLE/NAME. Pure."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ottla.errors import Refusal
from ottla.ids import uuid_from_text

__all__ = [
    "BROKER",
    "CA",
    "CONTROLLER",
    "NODES",
    "OPERATOR",
    "PERSON",
    "ROLES",
    "Identity",
    "identity_among",
    "node_host",
]

BROKER, CONTROLLER, OPERATOR, PERSON = "broker", "controller", "operator", "person"
NODES = (BROKER, CONTROLLER)
ROLES = (*NODES, OPERATOR, PERSON)
CA = "ca"

SCHEME = "ottla://"
URI = re.compile(r"ottla://([A-Za-z0-9_-]{22})/([a-z]{1,16})/([A-Za-z0-9._@-]{1,64})")
NODE_ID = re.compile(r"0|[1-9][0-9]{0,9}")


class Identity(NamedTuple):
    cluster_id: str
    role: str
    name: str
    """Of a node: its id."""

    @classmethod
    def checked(cls, cluster_id: str, role: str, name: str) -> "Identity":
        """Refusal when no certificate may say so."""
        identity = cls(cluster_id, role, name)
        if role not in ROLES:
            raise Refusal(f"role {role}: expected one of {', '.join(ROLES)}")
        if role in NODES and not NODE_ID.fullmatch(name):
            raise Refusal(f"{role} {name}: the name of a {role} is its node.id, such as 1")
        if not URI.fullmatch(identity.uri):
            raise Refusal(f"{role} {name}: a name has 1 to 64 letters, digits or . _ @ -")
        return identity

    @property
    def uri(self) -> str:
        return f"{SCHEME}{self.cluster_id}/{self.role}/{self.name}"

    @property
    def node_id(self) -> int | None:
        return int(self.name) if self.role in NODES and NODE_ID.fullmatch(self.name) else None

    def __str__(self) -> str:
        return f"{self.role} {self.name}"


def identity_among(uris: Iterable[str]) -> Identity | None:
    """None when none of them is Ottla's, or more than one: nobody may be two at a time."""
    ours = [uri for uri in uris if uri.startswith(SCHEME)]
    found = URI.fullmatch(ours[0]) if len(ours) == 1 else None
    return Identity(*found.groups()) if found is not None else None


def node_host(cluster_id: str) -> str:
    """The DNS name that every node's certificate has and nobody else's: callers check it instead of the address, which
    changes with a pod. In hexadecimal, since upper and lower case are the same in a DNS name."""
    return f"node.{uuid_from_text(cluster_id).hex}.ottla"
