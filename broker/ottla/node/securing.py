"""The listeners' security, put together when a broker starts and renewed while it runs.

A mechanism of SASL is added by a line in MECHANISMS: what makes it from a listener's settings and what is around it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ottla.config import BrokerConfig
from ottla.config.listeners import ListenerSettings
from ottla.coordination.coordinator import Surroundings
from ottla.errors import Refusal
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.credentials import SCRAM_SHA_256, SCRAM_SHA_512
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import ResourceType
from ottla.net.listener_security import ListenerSecurity
from ottla.node.login_mechanisms import oauthbearer, scram
from ottla.replica.settings import FLEET_WIDE, LiveSettings
from ottla.security.authentication import AuthenticationCounts, LoginRules
from ottla.security.certificates import stores_of
from ottla.security.core.audit import AuditTrail
from ottla.security.core.logins import Mechanism
from ottla.security.core.oauthbearer import OAUTHBEARER
from ottla.security.core.plain import PLAIN, PlainMechanism
from ottla.security.core.principal_rules import BadRule, PrincipalRules
from ottla.security.plain_users import UsersFile, users_source
from ottla.security.renewal import Renewal
from ottla.security.tls import Identity, load_identity, renew_identity

__all__ = ["MECHANISMS", "ListenerIdentity", "MakeMechanism", "Securing"]

log = logging.getLogger("ottla.security")

MakeMechanism = Callable[[ListenerSettings, Surroundings, Renewal], Mechanism]
"""What it reads from files it may hand to the renewal."""


def make_plain(settings: ListenerSettings, around: Surroundings, renewal: Renewal) -> Mechanism:
    users = users_source(settings)
    if isinstance(users, UsersFile):
        renewal.add(users)
    return PlainMechanism(users.users)


MECHANISMS: Mapping[str, MakeMechanism] = {
    PLAIN: make_plain,
    "SCRAM-SHA-256": lambda settings, around, renewal: scram(SCRAM_SHA_256, around),
    "SCRAM-SHA-512": lambda settings, around, renewal: scram(SCRAM_SHA_512, around),
    OAUTHBEARER: lambda settings, around, renewal: oauthbearer(settings, around),
}


class ListenerIdentity:
    """What one listener shows to new connections."""

    def __init__(self, settings: ListenerSettings) -> None:
        """Raises Refusal."""
        self.what = f"certificate of {settings.endpoint}"
        self.settings = settings
        self.now: Identity = load_identity(settings)
        self.refusals = 0

    def files(self) -> Sequence[str]:
        return stores_of(self.settings)

    def load(self) -> Identity:
        return renew_identity(self.settings, self.now)

    def take(self, loaded: Identity) -> None:
        leaf = loaded.leaf
        log.info("%s: %s, serial %s, is good until %s", self.what, leaf.subject, leaf.serial, leaf.good_until)
        self.now = loaded

    def refused(self) -> None:
        self.refusals += 1


class Securing:
    """Raises Refusal for a listener that cannot be secured as its settings ask."""

    def __init__(self, config: BrokerConfig, *, mechanisms: Mapping[str, MakeMechanism] = MECHANISMS) -> None:
        self._config = config
        self._mechanisms = mechanisms
        settings = [ListenerSettings(each, config.values) for each in config.listeners]
        self._rules = {each.endpoint.name: _principal_rules(each) for each in settings}
        for each in settings:
            self._check_mechanisms(each)
        self.identities = {each.endpoint.name: ListenerIdentity(each) for each in settings if each.endpoint.has_tls}
        """By their listeners."""
        self.counts = {each.endpoint.name: AuthenticationCounts() for each in settings if each.endpoint.is_secured}
        self._renewal: Renewal | None = None

    def secure(self, around: Surroundings, trail: AuditTrail) -> Mapping[str, ListenerSecurity]:
        """By listener; from now on what they show is renewed."""
        live = LiveValues(around.settings)
        renewal = self._renewal = Renewal(threads=around.system.threads, interval_s=self._look_s)
        for identity in self.identities.values():
            given = identity.settings
            identity.settings = ListenerSettings(given.endpoint, live, given=given)
            renewal.add(identity)
        if ignored := around.settings.without_effect():
            log.error("set for the fleet or this broker, and ignored: only its file may give %s", ", ".join(ignored))
        secured = {}
        for each in self._config.listeners:
            settings = ListenerSettings(each, live, given=ListenerSettings(each, self._config.values))
            secured[each.name] = self._secure(settings, around, trail, renewal)
        names = {(ResourceType.BROKER, FLEET_WIDE), (ResourceType.BROKER, str(self._config.node_id))}

        def image_moved(old: Image, new: Image, changes: Changes) -> None:
            if not names.isdisjoint(changes.configs):
                renewal.hurry()

        around.feed.subscribe(image_moved)
        renewal.start()
        return secured

    async def stop(self) -> None:
        if self._renewal is not None:
            await self._renewal.stop()

    @property
    def _look_s(self) -> float:
        return float(self._config["ottla.security.files.check.interval.ms"] / 1000)

    def _secure(
        self, settings: ListenerSettings, around: Surroundings, trail: AuditTrail, renewal: Renewal
    ) -> ListenerSecurity:
        endpoint = settings.endpoint
        if not endpoint.is_secured:
            return ListenerSecurity()
        identity, counts = self.identities.get(endpoint.name), self.counts[endpoint.name]
        return ListenerSecurity(
            context=(lambda: identity.now.context) if identity is not None else None,
            rules=self._rules[endpoint.name],
            login=self._login(settings, self._made(settings, around, renewal), trail) if endpoint.has_sasl else None,
            counts=counts,
            timeout_s=self._timeout_s,
        )

    def _check_mechanisms(self, settings: ListenerSettings) -> None:
        wanted = settings["sasl.enabled.mechanisms"] if settings.endpoint.has_sasl else ()
        if unknown := [name for name in wanted if name not in self._mechanisms]:
            raise Refusal(
                f"{settings.endpoint}: {settings.name_of('sasl.enabled.mechanisms')} names {unknown[0]}, which is not "
                f"supported; there are {', '.join(self._mechanisms)}"
            )

    def _made(self, settings: ListenerSettings, around: Surroundings, renewal: Renewal) -> Mapping[str, Mechanism]:
        names = settings.given["sasl.enabled.mechanisms"]
        return {name: self._mechanisms[name](settings, around, renewal) for name in names}

    def _login(self, settings: ListenerSettings, mechanisms: Mapping[str, Mechanism], trail: AuditTrail) -> LoginRules:
        return LoginRules(
            listener=settings.endpoint.name,
            protocol=settings.endpoint.protocol,
            mechanisms=mechanisms,
            reauth_ms_max={name: settings.of_mechanism(name, "connections.max.reauth.ms") for name in mechanisms},
            delay_s=lambda: settings["connection.failed.authentication.delay.ms"] / 1000,
            timeout_s=self._timeout_s,
            receive_bytes_max=settings["sasl.server.max.receive.size"],
            audit=trail,
            counts=self.counts[settings.endpoint.name],
        )

    @property
    def _timeout_s(self) -> float:
        return float(self._config["ottla.authentication.timeout.ms"] / 1000)


class LiveValues(Mapping[str, Any]):
    """All settings of this broker, as they are at the moment of asking."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings

    def __getitem__(self, name: str) -> Any:
        return self._settings.broker_values()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings.broker_values())

    def __len__(self) -> int:
        return len(self._settings.broker_values())


def _principal_rules(settings: ListenerSettings) -> PrincipalRules:
    try:
        return PrincipalRules(settings["ssl.principal.mapping.rules"])
    except BadRule as error:
        raise Refusal(f"{settings.name_of('ssl.principal.mapping.rules')}: {error}") from None
