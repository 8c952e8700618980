"""What makes a local fleet secure: a CA made on the spot, certificates by it, a first user, and files for clients.

In the fleet's folder: `pki/` as `ottla pki` makes it, `admin.password`, and two files for clients to start with. All of
it is made once; certificates are issued again at a start within RENEW_DAYS of their end.
"""

import datetime
import os
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.control_access import credentials_in
from ottla.system import System

if TYPE_CHECKING:
    from ottla.rpc.credentials import Credentials

__all__ = ["ADMIN", "FleetSecurity"]

ADMIN = "admin"
MECHANISM = "SCRAM-SHA-512"
CERTIFICATE_DAYS, RENEW_DAYS = 365, 30
PASSWORD_BYTES = 24
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class FleetSecurity(NamedTuple):
    folder: str
    host: str
    cluster_id: str

    def settings(self, broker: int) -> dict[str, str]:
        """Of one broker: TLS and SCRAM for clients, mutual TLS between nodes, rules for all but the first user."""
        keystore, ca = self._keystore(f"broker-{broker}"), self._ca
        return {
            "sasl.enabled.mechanisms": MECHANISM,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": keystore,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN}",
            "ottla.audit.log.file": f"{self.folder}/broker-{broker}/audit.log",
            "ottla.grpc.protocol": "TLS",
            "ottla.grpc.ssl.keystore.location": keystore,
            "ottla.grpc.ssl.truststore.location": ca,
        }

    @property
    def client_properties(self) -> str:
        """For Java's tools: `--command-config`, or `--producer.config`."""
        return f"{self.folder}/client.properties"

    @property
    def librdkafka_conf(self) -> str:
        return f"{self.folder}/librdkafka.conf"

    def prepare(self, *, brokers: int, bootstrap: str) -> None:
        """What is missing is made; the files for clients are written anew, since ports may have changed."""
        from ottla.security import pki

        System().disk.make_folder(self.folder)
        System().disk.replace_file(f"{self.folder}/.gitignore", b"*\n")  # before the first key is there
        if not os.path.exists(self._ca):
            pki.create_authority(self._pki, cluster_id=self.cluster_id, now=_now())
        for number in range(brokers):
            self._issue("broker", str(number))
        self._issue("person", ADMIN)
        self._keep_password()
        self._write_secret(self.client_properties, _java(self._password, self._ca, bootstrap))
        self._write_secret(self.librdkafka_conf, _librdkafka(self._password, self._ca, bootstrap))

    def first_users(self) -> list[str]:
        """As `ottla format --add-scram` takes them."""
        return [f"{MECHANISM}=[name={ADMIN},password={self._password}]"]

    def credentials(self) -> "Credentials":
        """Of the first user, for the Control service."""
        return credentials_in(self._keystore(ADMIN), self._ca)

    @property
    def _pki(self) -> str:
        return f"{self.folder}/pki"

    @property
    def _ca(self) -> str:
        return f"{self._pki}/ca.crt"

    def _keystore(self, stem: str) -> str:
        return f"{self._pki}/{stem}.pem"

    @property
    def _password(self) -> str:
        with open(f"{self.folder}/admin.password", encoding="ascii") as file:
            return file.read().strip()

    def _keep_password(self) -> None:
        if not os.path.exists(f"{self.folder}/admin.password"):
            self._write_secret(f"{self.folder}/admin.password", f"{secrets.token_urlsafe(PASSWORD_BYTES)}\n")

    def _issue(self, role: str, name: str) -> None:
        from ottla.security import pki

        stem = name if role == "person" else f"{role}-{name}"
        keystore = self._keystore(stem)
        if os.path.exists(keystore):
            (own, *_) = pki.describe(keystore)
            if own.not_after - _now() > datetime.timedelta(days=RENEW_DAYS):
                return
        for ending in ("crt", "key", "pem"):  # that ends soon, or a start that was cut short
            System().disk.remove(f"{self._pki}/{stem}.{ending}")
        hosts = [self.host, "localhost"] if role != "person" else []
        pki.issue(self._pki, role=role, name=name, hosts=hosts, days=CERTIFICATE_DAYS, now=_now())

    def _write_secret(self, path: str, text: str) -> None:
        """For its owner only from its first byte on."""
        draft = f"{path}.tmp"
        System().disk.remove(draft)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)


def _java(password: str, ca: str, bootstrap: str) -> str:
    return _lines(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": ca,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f'{JAAS} username="{ADMIN}" password="{password}";',
        }
    )


def _librdkafka(password: str, ca: str, bootstrap: str) -> str:
    return _lines(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "sasl_ssl",
            "ssl.ca.location": ca,
            "sasl.mechanisms": MECHANISM,
            "sasl.username": ADMIN,
            "sasl.password": password,
        }
    )


def _lines(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
