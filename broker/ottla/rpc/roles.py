"""Which method of the services between nodes is whose: one table, and the decision about a call. Pure.

A method that the table does not name is nobody's. Without TLS nobody knows who calls: a port that takes plaintext lets
everybody in, as it did before there was TLS, and only a call that names another cluster is refused.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.security.core.identities import BROKER, NODES, OPERATOR, PERSON, ROLES, Identity

__all__ = ["CLUSTER_KEY", "METHODS", "NAMES_CLUSTER", "Caller", "Denied", "refusal"]

CLUSTER_KEY = "ottla-cluster-id"
"""Metadata of a call: the cluster that it is meant for."""

EVERYBODY = frozenset(ROLES)
ALL_NODES = frozenset(NODES)
PEOPLE = frozenset({OPERATOR, PERSON})
BROKERS = frozenset({BROKER})
CONTROL = "/ottla.pb.Control/"
ANY_METHOD = "*"
"""Of services whose methods are all for the same."""

METHODS: Mapping[str, frozenset[str]] = {
    "/ottla.pb.Quorum/*": ALL_NODES,
    "/ottla.pb.Replication/*": BROKERS,
    "/ottla.pb.Transactions/*": BROKERS,
    f"{CONTROL}Submit": ALL_NODES,
    f"{CONTROL}Heartbeat": BROKERS,
    f"{CONTROL}DescribeQuorum": EVERYBODY,
    f"{CONTROL}DescribeFleet": EVERYBODY,
    f"{CONTROL}MayRestart": EVERYBODY,
    f"{CONTROL}Drain": EVERYBODY,
    f"{CONTROL}Reassign": EVERYBODY,
    f"{CONTROL}Unregister": EVERYBODY,
    f"{CONTROL}AddVoter": EVERYBODY,
    f"{CONTROL}RemoveVoter": EVERYBODY,
    f"{CONTROL}DescribeScram": PEOPLE,
    f"{CONTROL}RotateScram": PEOPLE,
    f"{CONTROL}CreateTopics": EVERYBODY,
    f"{CONTROL}AlterTopics": EVERYBODY,
    f"{CONTROL}DeleteTopics": EVERYBODY,
    f"{CONTROL}DescribeTopics": EVERYBODY,
}
NAMES_CLUSTER = frozenset({f"{CONTROL}Submit", f"{CONTROL}Heartbeat"})
"""Have no hello that would name the cluster, so their metadata must. Nodes of the version before, which know no TLS,
do not say it."""


class Caller(NamedTuple):
    """`identity` is None without TLS, and with a certificate that says none."""

    secured: bool
    identity: Identity | None
    cluster_id: str | None
    """As the call's metadata say."""
    certified_until_s: float = 0.0
    """When its certificate ends: TLS looks at that once for a connection, and not at all when a session is resumed."""


class Denied(Exception):
    """`str()` is the sentence for the caller."""

    def __init__(self, sentence: str, *, unknown: bool = False) -> None:
        super().__init__(sentence)
        self.unknown = unknown
        """Nobody knows who called, rather than: it may not."""


def refusal(method: str, caller: Caller, *, cluster_id: str | None, now_s: float) -> Denied | None:
    """`method` is the full name, `/ottla.pb.Control/Submit`; `cluster_id` this node's, None while it has none."""
    if caller.secured and caller.certified_until_s < now_s:
        return Denied(f"the certificate of {caller.identity or 'the caller'} has expired", unknown=True)
    if caller.secured and (denied := _misfit(method, caller, cluster_id)) is not None:
        return denied
    if cluster_id is not None and caller.cluster_id not in (None, cluster_id):
        return Denied(f"the call is meant for another cluster; this node belongs to {cluster_id}")
    return None


def _misfit(method: str, caller: Caller, cluster_id: str | None) -> Denied | None:
    identity = caller.identity
    if identity is None:
        return Denied("the certificate does not say whose it is: ottla://CLUSTER-ID/ROLE/NAME", unknown=True)
    if identity.cluster_id != cluster_id:
        return Denied(f"the certificate of {identity} is of another cluster; this node belongs to {cluster_id}")
    service = method.rpartition("/")[0]
    allowed = METHODS.get(method) or METHODS.get(f"{service}/{ANY_METHOD}") or frozenset[str]()
    if identity.role not in allowed:
        whose = " or ".join(sorted(allowed)) or "nobody"
        return Denied(f"{identity} may not call {method}; it is for the role {whose}")
    if method in NAMES_CLUSTER and caller.cluster_id is None:
        return Denied(f"the call names no cluster: its metadata have no {CLUSTER_KEY}")
    return None
