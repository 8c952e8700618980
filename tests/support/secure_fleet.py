"""How clients come into a fleet: as anybody, or by SASL_SSL with names of their own while its nodes talk over TLS."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from support.fleet import FleetOf
from support.fleet_certificates import Authority
from support.ports import free_port

__all__ = ["Entrance", "SecureFleet"]

LISTENER = "SASL_SSL"
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISMS = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
DEADLINE_S = 30.0


@dataclass(frozen=True)
class Entrance:
    """Settings of one client: librdkafka's, and a file of Java's."""

    bootstrap: str
    librdkafka: Mapping[str, Any] = field(default_factory=dict)
    java: Path | None = None


class SecureFleet:
    """Made of a fleet that is not yet started. Every node gets a certificate, gRPC is mutual TLS, and clients log in at
    a second listener, where they may do what rules allow. The first listener stays open for the test itself, and
    whoever comes there may do everything.
    """

    def __init__(self, fleet: FleetOf, folder: Path) -> None:
        self._fleet, self._folder = fleet, folder
        authority = Authority(folder / "pki", fleet.members[0].settings["cluster.id"])
        self._ca, self._addresses = authority.ca, []
        for index, member in enumerate(fleet.members):
            files = authority.issue("broker", str(index), hosts=[member.host])
            address = f"{member.host}:{free_port()}"
            self._addresses.append(address)
            member.settings |= {
                "listeners": f"{member.settings['listeners']},{LISTENER}://{address}",
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(files.keystore),
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                "ottla.grpc.protocol": "TLS",
                "ottla.grpc.accept": "TLS",
                "ottla.grpc.ssl.keystore.location": str(files.keystore),
                "ottla.grpc.ssl.truststore.location": str(files.ca),
            }

    def user(self, name: str, mechanism: str = "SCRAM-SHA-512") -> Entrance:
        """A new one, who may do nothing."""
        password = f"secret of {name}"
        change = UserScramCredentialUpsertion(name, ScramCredentialInfo(MECHANISMS[mechanism], 4096), password.encode())
        admin = self._admin()
        admin.alter_user_scram_credentials([change])[name].result(DEADLINE_S)
        properties = self._folder / f"{name}.properties"
        login = f'{MODULE} required username="{name}" password="{password}";'
        properties.write_text(
            f"security.protocol={LISTENER}\nssl.truststore.type=PEM\nssl.truststore.location={self._ca}\n"
            f"sasl.mechanism={mechanism}\nsasl.jaas.config={login}\n"
        )
        librdkafka = {
            "security.protocol": LISTENER, "ssl.ca.location": str(self._ca), "sasl.mechanism": mechanism,
            "sasl.username": name, "sasl.password": password,
        }  # fmt: skip
        return Entrance(",".join(self._addresses), librdkafka, properties)

    def allow(self, user: str, operation: AclOperation, kind: ResourceType, name: str) -> None:
        literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
        rule = AclBinding(kind, name, literal, f"User:{user}", "*", operation, allow)
        admin = self._admin()
        admin.create_acls([rule])[rule].result(DEADLINE_S)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._fleet.bootstrap})
