"""Settings of one listener: its own (`listener.name.<name>.<setting>`) before everybody's. Pure.

A listener that cannot be secured as its settings ask is refused: it must not seem secured when it is not.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.config.endpoints import Endpoint
from ottla.errors import Refusal

__all__ = ["ListenerSettings", "refuse_false_security", "refuse_lost_security", "unused_security"]

TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
DEFAULT_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
# Java classes that would decide who is let in, with the value that changes nothing.
CLASSES = {
    "ssl.engine.factory.class": None, "ssl.provider": None, "security.providers": None,
    "principal.builder.class": DEFAULT_BUILDER,
}  # fmt: skip
HANDLER = "sasl.server.callback.handler.class"
HANDLERS = (
    "OAuthBearerValidatorCallbackHandler",
    "OAuthBearerUnsecuredValidatorCallbackHandler",
)  # what it does is built in


JAAS = "sasl.jaas.config"


class ListenerSettings:
    """`settings["ssl.client.auth"]` is the typed value for this listener. `values` are all of the broker's, with those
    of listeners under their whole names; a live view of them makes this live. `given` is what the broker started with:
    what must not change while it runs is read there."""

    def __init__(
        self, endpoint: Endpoint, values: Mapping[str, Any], *, given: "ListenerSettings | None" = None
    ) -> None:
        self.endpoint = endpoint
        self.given = given or self
        self._values = values
        self._prefix = f"listener.name.{endpoint.name.lower()}."

    def __getitem__(self, name: str) -> Any:
        own = self._prefix + name
        return self._values[own] if own in self._values else self._values[name]

    def own(self, name: str) -> Any:
        """Given for this listener alone, or None."""
        return self._values.get(self._prefix + name)

    def of_mechanism(self, mechanism: str, name: str) -> Any:
        """`listener.name.<name>.<mechanism>.<setting>`, before the listener's and everybody's. As in Kafka, users are
        those of one mechanism: `sasl.jaas.config` without its name counts for nobody."""
        own = f"{self._prefix}{mechanism.lower()}.{name}"
        if own in self._values:
            return self._values[own]
        return None if name == JAAS else self[name]

    @property
    def client_auth(self) -> str:
        """As Kafka: where clients log in by SASL, only what is set for this listener counts."""
        name = "ssl.client.auth"
        return str((self.own(name) or "none") if self.endpoint.has_sasl else self[name])

    def name_of(self, name: str) -> str:
        """Where the value in force is set, for messages."""
        return self._prefix + name if self._prefix + name in self._values else name


def refuse_false_security(
    listeners: tuple[Endpoint, ...], controllers: tuple[Endpoint, ...], values: Mapping[str, Any]
) -> None:
    for endpoint in controllers:
        if endpoint.protocol != "PLAINTEXT":
            raise Refusal(
                f"listeners: {endpoint} asks for {endpoint.protocol}, but controllers talk over gRPC at "
                "ottla.grpc.port, not at Kafka's controller listener: use PLAINTEXT there"
            )
    for endpoint in listeners:
        settings = ListenerSettings(endpoint, values)
        if problem := next(_problems(settings), None):
            raise Refusal(f"listeners: {endpoint} asks for {endpoint.protocol}: {problem}")


def _problems(settings: ListenerSettings) -> Iterator[str]:
    endpoint = settings.endpoint
    if endpoint.has_tls or endpoint.has_sasl:
        for name, harmless in CLASSES.items():
            if settings[name] not in (None, "", harmless):
                yield f"{settings.name_of(name)}: Java classes cannot be loaded; remove it"
    if endpoint.has_tls:
        yield from _tls_problems(settings)
    if endpoint.has_sasl:
        yield from _sasl_problems(settings)


def _tls_problems(settings: ListenerSettings) -> Iterator[str]:
    if not settings["ssl.keystore.location"] and not settings["ssl.keystore.key"]:
        yield (
            "a certificate is missing; set ssl.keystore.type=PEM and ssl.keystore.location to a file with the private "
            "key and the certificate chain (PKCS12 is read, too)"
        )
    versions = settings["ssl.enabled.protocols"]
    if not versions or any(version not in TLS_VERSIONS for version in versions):
        yield f"{settings.name_of('ssl.enabled.protocols')} must be some of {', '.join(TLS_VERSIONS)}"
    auth = settings.client_auth
    if auth != "none" and not (settings["ssl.truststore.location"] or settings["ssl.truststore.certificates"]):
        yield f"ssl.client.auth={auth} needs ssl.truststore.location: whose certificates are to be trusted?"


def _sasl_problems(settings: ListenerSettings) -> Iterator[str]:
    mechanisms = settings["sasl.enabled.mechanisms"]
    if "GSSAPI" in mechanisms or not mechanisms:
        yield (
            f"{settings.name_of('sasl.enabled.mechanisms')}={','.join(mechanisms)}: Kerberos (GSSAPI, Kafka's default) "
            "is not supported; set sasl.enabled.mechanisms=PLAIN or another one"
        )
    for mechanism in mechanisms:
        handler = settings.of_mechanism(mechanism, HANDLER)
        if handler and not handler.endswith(HANDLERS):
            yield f"{HANDLER}={handler} for {mechanism}: Java classes cannot be loaded; remove it"


def refuse_lost_security(listeners: str | None, protocols: Mapping[str, str], origin: str) -> None:
    """Before --port takes the place of `listeners`: what they ask for must not get lost. They need not be
    well-formed."""
    for listener in (part.strip() for part in (listeners or "").split(",")):
        name = listener.partition("://")[0].upper()
        protocol = protocols.get(name, "PLAINTEXT")
        if protocol != "PLAINTEXT":
            raise Refusal(
                f"{origin}: listeners: {listener} asks for {protocol}, and --port would serve plaintext in its place; "
                "leave --port out, and set the port in listeners"
            )


def unused_security(listeners: tuple[Endpoint, ...], origins: Mapping[str, str]) -> list[str]:
    """Whoever sets these expects them to protect something."""
    parts = [(("ssl.",), "TLS", any(endpoint.has_tls for endpoint in listeners)),
             (("sasl.",), "SASL", any(endpoint.has_sasl for endpoint in listeners))]  # fmt: skip
    said = []
    for prefixes, what, is_used in parts:
        names = sorted(name for name in origins if _plain(name).startswith(prefixes))
        if names and not is_used:
            said.append(f"{origins[names[0]]}: {', '.join(names)}: without effect, no listener has {what}")
    return said


def _plain(name: str) -> str:
    return name.split(".", 3)[-1] if name.startswith("listener.name.") else name
