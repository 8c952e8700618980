"""Ottla speaks plaintext only: settings that ask for more refuse the start, or are warned about. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.config.endpoints import PROTOCOLS, BadEndpoint, parse_protocol_map
from ottla.errors import Refusal

__all__ = ["refuse_false_security", "refuse_lost_security", "unused_security"]

MAP = "listener.security.protocol.map"


def refuse_false_security(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """A listener must not seem secured when it is not."""
    for listener, protocol in _secured(values["listeners"], values[MAP]):
        raise Refusal(
            f"{origins.get('listeners', 'default')}: listeners: {listener} asks for {protocol}, which "
            "Ottla does not have yet: it would speak plaintext. Use PLAINTEXT, on a network that you trust"
        )


def refuse_lost_security(given: Mapping[str, str], origins: Mapping[str, str]) -> None:
    """`given` before --port takes the place of its listeners: what they ask for must not get lost."""
    for listener, protocol in _secured(given.get("listeners"), given.get(MAP)):
        raise Refusal(
            f"{origins['listeners']}: listeners: {listener} asks for {protocol}, and --port would serve plaintext in "
            "its place: Ottla has no TLS and no SASL yet. Leave that listener out, on a network that you trust"
        )


def unused_security(texts: Mapping[str, str], origins: Mapping[str, str]) -> list[str]:
    names = [name for name in texts if name.removeprefix("listener.name.").startswith(("ssl.", "sasl."))]
    if not names:
        return []
    return [f"{origins[names[0]]}: {', '.join(sorted(names))}: without effect, Ottla has no TLS and no SASL yet"]


def _secured(listeners: str | None, protocols: str | None) -> Iterator[tuple[str, str]]:
    """The listeners that ask for more than plaintext, with what they ask for. By name: they need not be well-formed."""
    try:
        known = parse_protocol_map(protocols or "")
    except BadEndpoint:
        known = {}
    for listener in (part.strip() for part in (listeners or "").split(",")):
        name = listener.partition("://")[0].upper()
        protocol = known.get(name, name if name in PROTOCOLS else "PLAINTEXT")
        if protocol != "PLAINTEXT":
            yield listener, protocol
