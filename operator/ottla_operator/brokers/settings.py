"""Whether a node would start with these settings, by the brokers' own table, before anything running is touched."""

from functools import lru_cache

from ottla.config.broker import configure
from ottla.config.properties import parse_properties
from ottla.config.providers import provided
from ottla.errors import Refusal

__all__ = ["refused_settings"]

REMEMBERED_MAX = 1024
ENVIRONMENT = {"HOST_IP": "192.0.2.1"}  # set in a pod; any address does here


@lru_cache(REMEMBERED_MAX)
def refused_settings(text: str) -> str | None:
    """The sentence with which a node would refuse the file; None when it would not."""
    given = {one.name: one.value for one in parse_properties(text)}
    sources = dict.fromkeys(given, "spec.config")
    try:
        configure(provided(given, sources, ENVIRONMENT), sources)
    except Refusal as refusal:
        return str(refusal)
    return None
