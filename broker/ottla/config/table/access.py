"""Principals, authorization, delegation tokens."""

# fmt: off
from ottla.config.table.words import (
    CLASS,
    DAY_MS,
    HOUR_MS,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    STRING,
    Setting,
    at_least,
    broker,
    one_of,
)

SETTINGS: tuple[Setting, ...] = (
    broker("authorizer.class.name", STRING, "", LOW, effect="none",
           doc="Authorizer; empty allows everything."),
    broker("principal.builder.class", CLASS,
           "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", MEDIUM, mode=PER_BROKER,
           effect="none",
           doc="Java class that names the principal of a connection."),
    broker("security.inter.broker.protocol", STRING, "PLAINTEXT", MEDIUM,
           valid=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), effect="none",
           doc="Protocol between brokers; set this or inter.broker.listener.name, not both."),
    broker("security.providers", STRING, None, LOW, effect="none",
           doc="Java security providers to register."),
    broker("delegation.token.expiry.check.interval.ms", LONG, HOUR_MS, LOW, valid=at_least(1), effect="none",
           doc="How often expired tokens are searched for."),
    broker("delegation.token.expiry.time.ms", LONG, DAY_MS, MEDIUM, valid=at_least(1), effect="none",
           doc="Life of a token until it is renewed."),
    broker("delegation.token.max.lifetime.ms", LONG, 7 * DAY_MS, MEDIUM, valid=at_least(1), effect="none",
           doc="Longest life of a token, renewals included."),
    broker("delegation.token.secret.key", PASSWORD, None, MEDIUM, effect="none",
           doc="Secret that signs tokens, the same on all brokers."),
)
