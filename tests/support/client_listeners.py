"""A fleet whose listeners for clients become secure by rolls, as Kafka's do: SASL_SSL is added, then PLAINTEXT goes."""

import ssl
from functools import partial
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from support.certificates import Authority
from support.fleet import FleetOf
from support.ports import free_port
from support.scram_connection import ScramConnection, set_password

__all__ = ["OPEN", "SAFE", "TURNING", "ClientListeners"]

OPEN, TURNING, SAFE = "plain only", "both", "secured only"
PASSWORD = "secret-of-{user}"
ANSWER_S = 20.0
ACLS = {
    "alice": [(AclOperation.WRITE, ResourceType.TOPIC)],
    "bob": [(AclOperation.READ, ResourceType.TOPIC), (AclOperation.READ, ResourceType.GROUP)],
}


class ClientListeners:
    """The users are admin, who may do everything, alice, who writes, and bob, who reads."""

    def __init__(self, fleet: FleetOf, folder: Path) -> None:
        folder.mkdir()
        self._fleet = fleet
        self._folder = folder
        Authority.in_folder(folder)
        self._context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
        self._ports = [free_port() for _ in fleet.ids]

    def settings(self, index: int, stage: str) -> dict[str, str]:
        member = self._fleet.members[index]
        places = {"PLAINTEXT": member.port, "SAFE": self._ports[index]}
        names = {OPEN: ["PLAINTEXT"], TURNING: ["PLAINTEXT", "SAFE"], SAFE: ["SAFE"]}[stage]
        standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        return {
            "listeners": ",".join(f"{name}://{member.host}:{places[name]}" for name in names),
            "inter.broker.listener.name": names[-1],
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SAFE:SASL_SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": f"{self._folder}/broker.pem",
            "authorizer.class.name": "" if stage == OPEN else standard,
            "super.users": "User:admin" if stage == SAFE else "User:admin;User:ANONYMOUS",
        }

    def enter_by(self, stage: str) -> None:
        """How the test looks at the fleet. A broker tells only of those that have the listener by which it is asked."""
        for index, member in enumerate(self._fleet.members):
            member.entrance = partial(self.log_in, index, "admin") if stage == SAFE else None

    def log_in(self, index: int, user: str, timeout_s: float) -> ScramConnection:
        host = self._fleet.members[index].host
        connection = ScramConnection(self._ports[index], host=host, read_timeout_s=timeout_s, context=self._context)
        connection.log_in(user, PASSWORD.format(user=user))
        return connection

    def admit(self, topic: str, group: str) -> None:
        """While both listeners are there: users, and what they may."""
        names = {ResourceType.TOPIC: topic, ResourceType.GROUP: group}
        bindings = [
            AclBinding(
                kind, names[kind], ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW
            )
            for user, needs in ACLS.items()
            for operation, kind in needs
        ]
        for user in ("admin", *ACLS):
            set_password(self._fleet.members[0].port, user, PASSWORD.format(user=user))
        admin = AdminClient({"bootstrap.servers": self._fleet.bootstrap})
        for future in admin.create_acls(bindings).values():
            future.result(ANSWER_S)

    def client(self, user: str, stage: str) -> dict[str, str]:
        """Settings of librdkafka, for what is there at this stage or at the next one."""
        if stage == OPEN:
            return {"bootstrap.servers": self._fleet.bootstrap}
        hosts = [member.host for member in self._fleet.members]
        return {
            "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in zip(hosts, self._ports, strict=True)),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": f"{self._folder}/ca.pem",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": PASSWORD.format(user=user),
        }
