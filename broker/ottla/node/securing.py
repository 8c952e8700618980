"""The listeners' security, put together when a broker starts: TLS, the mechanisms of SASL, who is told.

A mechanism is added by a line in MECHANISMS: what makes it from a listener's settings and what is around it.
"""

from collections.abc import Callable, Mapping

from ottla.config import BrokerConfig, Endpoint
from ottla.config.listeners import ListenerSettings
from ottla.coordination.coordinator import Surroundings
from ottla.errors import Refusal
from ottla.metadata.model.credentials import SCRAM_SHA_256, SCRAM_SHA_512
from ottla.net.listener_security import ListenerSecurity
from ottla.node.login_mechanisms import oauthbearer, scram
from ottla.security.authentication import LoginRules
from ottla.security.core.audit import AuditTrail, NoTrail
from ottla.security.core.logins import Mechanism
from ottla.security.core.oauthbearer import OAUTHBEARER
from ottla.security.core.plain import PLAIN, PlainMechanism
from ottla.security.core.principal_rules import BadRule, PrincipalRules
from ottla.security.plain_users import plain_users
from ottla.security.tls import Identity, load_identity

__all__ = ["MECHANISMS", "MakeMechanism", "Securing"]

MakeMechanism = Callable[[ListenerSettings, Surroundings], Mechanism]

MECHANISMS: Mapping[str, MakeMechanism] = {
    PLAIN: lambda settings, around: PlainMechanism(plain_users(settings)),
    "SCRAM-SHA-256": lambda settings, around: scram(SCRAM_SHA_256, around),
    "SCRAM-SHA-512": lambda settings, around: scram(SCRAM_SHA_512, around),
    OAUTHBEARER: oauthbearer,
}


class Securing:
    """Raises Refusal for a listener that cannot be secured as its settings ask."""

    def __init__(self, config: BrokerConfig, *, mechanisms: Mapping[str, MakeMechanism] = MECHANISMS) -> None:
        self._config = config
        self._mechanisms = mechanisms
        self._settings = {each.name: ListenerSettings(each, config.values) for each in config.listeners}
        self._rules = {name: _principal_rules(settings) for name, settings in self._settings.items()}
        for settings in self._settings.values():
            self._check_mechanisms(settings)
        self.identities: dict[str, Identity] = {
            name: load_identity(settings) for name, settings in self._settings.items() if settings.endpoint.has_tls
        }
        """What listeners show now, by their names."""

    def of(self, endpoint: Endpoint, around: Surroundings, audit: AuditTrail | None = None) -> ListenerSecurity:
        settings = self._settings[endpoint.name]
        return ListenerSecurity(
            context=(lambda: self.identities[endpoint.name].context) if endpoint.has_tls else None,
            rules=self._rules[endpoint.name],
            login=self._login(settings, around, audit or NoTrail()) if endpoint.has_sasl else None,
            timeout_s=_timeout_s(self._config),
        )

    def _check_mechanisms(self, settings: ListenerSettings) -> None:
        wanted = settings["sasl.enabled.mechanisms"] if settings.endpoint.has_sasl else ()
        if unknown := [name for name in wanted if name not in self._mechanisms]:
            raise Refusal(
                f"{settings.endpoint}: {settings.name_of('sasl.enabled.mechanisms')} names {unknown[0]}, which is not "
                f"supported; there are {', '.join(self._mechanisms)}"
            )

    def _login(self, settings: ListenerSettings, around: Surroundings, audit: AuditTrail) -> LoginRules:
        names = settings["sasl.enabled.mechanisms"]
        return LoginRules(
            listener=settings.endpoint.name,
            mechanisms={name: self._mechanisms[name](settings, around) for name in names},
            reauth_ms_max={name: settings.of_mechanism(name, "connections.max.reauth.ms") for name in names},
            delay_s=lambda: settings["connection.failed.authentication.delay.ms"] / 1000,
            timeout_s=_timeout_s(self._config),
            receive_bytes_max=settings["sasl.server.max.receive.size"],
            audit=audit,
        )


def _timeout_s(config: BrokerConfig) -> float:
    return float(config["ottla.authentication.timeout.ms"] / 1000)


def _principal_rules(settings: ListenerSettings) -> PrincipalRules:
    try:
        return PrincipalRules(settings["ssl.principal.mapping.rules"])
    except BadRule as error:
        raise Refusal(f"{settings.name_of('ssl.principal.mapping.rules')}: {error}") from None
