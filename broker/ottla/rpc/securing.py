"""How a node's gRPC is secured, from its settings: what it speaks to others, what it takes, and with which certificate.

ottla.grpc.protocol   ottla.grpc.accept
PLAINTEXT             PLAINTEXT            as it begins
PLAINTEXT             PLAINTEXT,TLS        after the first roll: every node can be reached either way
TLS                   PLAINTEXT,TLS        after the second: nobody speaks plaintext any more
TLS                   TLS                  after the third: nobody can; and back the other way round
"""

from typing import TYPE_CHECKING, NamedTuple

from ottla.config import BrokerConfig
from ottla.errors import Refusal

if TYPE_CHECKING:
    from ottla.rpc.credentials import WatchedCredentials

__all__ = ["OPEN", "PLAINTEXT", "TLS", "RpcSecurity", "require_cluster", "rpc_security"]

PLAINTEXT, TLS = "PLAINTEXT", "TLS"
PROTOCOL, ACCEPT = "ottla.grpc.protocol", "ottla.grpc.accept"
KEYSTORE, KEY = "ottla.grpc.ssl.keystore.location", "ottla.grpc.ssl.key.location"
TRUSTSTORE = "ottla.grpc.ssl.truststore.location"


class RpcSecurity(NamedTuple):
    speaks: str
    accepts: frozenset[str]
    credentials: "WatchedCredentials | None"
    """None where nothing is TLS."""

    @property
    def for_channels(self) -> "WatchedCredentials | None":
        return self.credentials if self.speaks == TLS else None


OPEN = RpcSecurity(PLAINTEXT, frozenset({PLAINTEXT}), None)


def rpc_security(config: BrokerConfig) -> RpcSecurity:
    """Reads the files. Refusal when the settings or the files do not fit together."""
    speaks = config[PROTOCOL]
    accepts = frozenset(config[ACCEPT] or (speaks,))
    if speaks not in accepts:
        raise Refusal(
            f"{PROTOCOL}={speaks} is not among {ACCEPT}={','.join(sorted(accepts))}: no node could reach another"
        )
    if TLS not in accepts:
        return OPEN
    for name in (KEYSTORE, TRUSTSTORE):
        if not config[name]:
            raise Refusal(
                f"{ACCEPT} or {PROTOCOL} asks for TLS, and {name} is not set; `ottla pki issue` makes the files"
            )
    from ottla.rpc.credentials import CredentialFiles, WatchedCredentials, of_node  # needs X.509, plaintext does not

    files = CredentialFiles(config[KEYSTORE], config[TRUSTSTORE], config[KEY] or None)
    own = of_node(config.node_id, is_broker="broker" in config.roles)
    return RpcSecurity(speaks, accepts, WatchedCredentials(files, own))


def require_cluster(security: RpcSecurity, cluster_id: str) -> None:
    """As soon as a node knows its cluster. Refusal when its certificate is of another one."""
    if security.credentials is not None and security.credentials.current.identity.cluster_id != cluster_id:
        theirs = security.credentials.current.identity.cluster_id
        raise Refusal(f"{KEYSTORE}: the certificate is of cluster {theirs}, this node belongs to {cluster_id}")
