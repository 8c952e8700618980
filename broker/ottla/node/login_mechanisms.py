"""The mechanisms of SASL that need more than a listener's settings: users in the metadata, keys of a provider."""

import logging
import secrets
from collections.abc import Mapping

from ottla.config.listeners import ListenerSettings
from ottla.coordination.coordinator import Surroundings
from ottla.errors import Refusal
from ottla.security.core.jaas import BadLoginSettings, parse_login_modules
from ottla.security.core.logins import Mechanism
from ottla.security.core.oauthbearer import OAUTHBEARER
from ottla.security.core.scram import ScramMechanism, accounts_of, decoy_key, iterations_in_use, no_tokens
from ottla.security.core.tokens import TokenAccounts
from ottla.security.oauth import oauth_mechanism

__all__ = ["oauthbearer", "scram"]

log = logging.getLogger("ottla.security")

JAAS = "sasl.jaas.config"


def scram(mechanism: int, around: Surroundings) -> Mechanism:
    feed, secret_key = around.feed, around.config["delegation.token.secret.key"]
    tokens = TokenAccounts(
        mechanism,
        secret_key=secret_key,
        tokens=lambda: feed.image.delegation_tokens,
        now_ms=around.system.clock.wall_ms,
    )
    return ScramMechanism(
        mechanism,
        accounts=accounts_of(mechanism, lambda: feed.image.scram_credentials, tokens.find if secret_key else no_tokens),
        random_bytes=secrets.token_bytes,
        now_ms=around.system.clock.wall_ms,
        decoy_key=lambda: decoy_key(feed.image.scram_credentials, feed.image.cluster_id, secret_key),
        iterations=lambda: iterations_in_use(feed.image.scram_credentials, mechanism),
    )


def oauthbearer(settings: ListenerSettings, around: Surroundings) -> Mechanism:
    return oauth_mechanism(
        lambda name: settings.given.of_mechanism(OAUTHBEARER, name),
        clock=around.system.clock,
        threads=around.system.threads,
        options=_options_at_start(settings),
    )


def _options_at_start(settings: ListenerSettings) -> Mapping[str, str]:
    try:
        return _options(settings)
    except Refusal as refusal:
        options = _options(settings.given)
        log.error("%s: that of the file stays in force", refusal)
        return options


def _options(settings: ListenerSettings) -> Mapping[str, str]:
    text = settings.of_mechanism(OAUTHBEARER, JAAS)
    try:
        modules = parse_login_modules(text) if text else []
    except BadLoginSettings as error:
        raise Refusal(f"{JAAS} of {settings.endpoint.name} for {OAUTHBEARER}: {error}") from None
    return modules[0].options if modules else {}
