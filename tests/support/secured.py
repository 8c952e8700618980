"""A broker with listeners of every kind, Ottla's or Kafka's own, and what its clients need to log in."""

from collections.abc import Callable, Mapping
from pathlib import Path

from support.certificates import Authority
from support.listeners import listen
from support.process import BrokerProcess

__all__ = ["PASSWORD", "Secured", "jaas"]

PASSWORD = "bob-secret"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT", "TLS": "SSL", "MTLS": "SSL", "OLD": "SSL", "IN": "SASL_PLAINTEXT", "SAFE": "SASL_SSL",
}  # fmt: skip


def jaas(user: str, password: str) -> str:
    return f'{PLAIN_MODULE} required username="{user}" password="{password}";'


class Secured:
    """TLS, MTLS (with a client's certificate), OLD (TLS 1.2 only), IN (PLAIN without TLS) and SAFE (PLAIN over TLS).

    `folder` holds ca.pem, broker.pem, alice.pem, and what a wrong CA issued: wrong.pem and mallory.pem.
    """

    def __init__(
        self, make_broker: Callable[..., BrokerProcess], folder: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.authority = Authority.in_folder(folder)
        self.authority.issue("alice").write(folder, "alice")
        stranger = Authority("Wrong CA")
        stranger.write(folder, "wrong")
        stranger.issue("mallory").write(folder, "mallory")
        self.broker = make_broker()
        self.ports = listen(self.broker, PROTOCOLS)
        self.broker.settings |= self._settings() | dict(settings or {})
        self.broker.start()

    def _settings(self) -> dict[str, str]:
        pem = {"ssl.keystore.type": "PEM", "ssl.keystore.location": f"{self.folder}/broker.pem"}
        users = f'{PLAIN_MODULE} required user_bob="{PASSWORD}";'
        return {
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.mtls.ssl.truststore.type": "PEM",
            "listener.name.mtls.ssl.truststore.location": f"{self.folder}/ca.pem",
            "listener.name.old.ssl.enabled.protocols": "TLSv1.2",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.in.plain.sasl.jaas.config": users,
            "listener.name.safe.plain.sasl.jaas.config": users,
            "ssl.principal.mapping.rules": "RULE:^CN=(.*?)$/$1/U",
            **pem,
        }

    def bootstrap(self, listener: str) -> str:
        return f"{self.broker.host}:{self.ports[listener]}"

    def librdkafka(self, listener: str, *, user: str = "bob", password: str = PASSWORD, **more: str) -> dict[str, str]:
        """`certificate` and `ca` name files of the folder; others are librdkafka's own settings with underscores."""
        protocol = PROTOCOLS[listener]
        ca, certificate = more.pop("ca", "ca"), more.pop("certificate", "alice" if listener == "MTLS" else "")
        conf = {"bootstrap.servers": self.bootstrap(listener), "security.protocol": protocol}
        if "SSL" in protocol:
            conf["ssl.ca.location"] = f"{self.folder}/{ca}.pem"
        if certificate:
            path = f"{self.folder}/{certificate}.pem"
            conf |= {"ssl.key.location": path, "ssl.certificate.location": path}
        if protocol.startswith("SASL"):
            conf |= {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password}
        return conf | {name.replace("_", "."): value for name, value in more.items()}

    def properties(self, listener: str, *, password: str = PASSWORD, ca: str = "ca", **more: str) -> Path:
        """A file for Java's tools."""
        protocol = PROTOCOLS[listener]
        lines = {"security.protocol": protocol}
        if "SSL" in protocol:
            lines |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": f"{self.folder}/{ca}.pem"}
        if listener == "MTLS":
            lines |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": f"{self.folder}/alice.pem"}
        if protocol.startswith("SASL"):
            lines |= {"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas("bob", password)}
        lines |= {name.replace("_", "."): value for name, value in more.items()}
        path = self.folder / f"{listener}-{abs(hash(tuple(lines.items())))}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        return path
