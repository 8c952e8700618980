"""References to values outside the file: `${env:NAME}`, as in Kafka (KIP-297, KIP-887). Pure.

config.providers=env
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
advertised.listeners=EXTERNAL://${env:HOST_IP}:30092
"""

import re
from collections.abc import Mapping

from ottla.errors import Refusal

__all__ = ["provided"]

PROVIDERS = "config.providers"
CLASS = ".EnvVarConfigProvider"
REFERENCE = re.compile(r"\$\{([^}:]*):(?:[^}:]*:)?([^}:]*)\}")


def provided(given: Mapping[str, str], sources: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The settings with their references replaced and without those that declare providers."""
    names = [name.strip() for name in given.get(PROVIDERS, "").split(",") if name.strip()]
    for name in names:
        known = given.get(f"{PROVIDERS}.{name}.class", CLASS)
        if not known.endswith(CLASS):
            raise Refusal(f"{sources[PROVIDERS]}: provider {name} is a {known}; only {CLASS[1:]} is known here")

    def value(match: re.Match[str]) -> str:
        if match[1] not in names:
            return match[0]
        if match[2] not in environment:
            raise Refusal(f"{match[0]}: the environment has no variable {match[2]}; set it, or remove the reference")
        return environment[match[2]]

    if not names:
        return dict(given)
    declarations = (PROVIDERS, *(f"{PROVIDERS}.{name}.class" for name in names))
    return {name: REFERENCE.sub(value, text) for name, text in given.items() if name not in declarations}
