"""Who gets to see the metrics and the reasons of probes.

A node that asks its clients or other nodes for a key answers probes with a bare yes or no, and gives metrics to callers
from its own machine; with a token, to whoever shows it and nobody else. A node that asks nobody for anything has no
secrets in its metrics either.
"""

import asyncio
import hmac
import ipaddress
import logging
from typing import NamedTuple

from ottla.config import BrokerConfig
from ottla.errors import Refusal

__all__ = ["MetricsAccess", "is_secured"]

log = logging.getLogger("ottla")

TOKEN = "ottla.metrics.token.location"
TOKEN_BYTES_MAX = 4096
TOKEN_CHARACTERS_MIN = 16
BEARER = b"bearer "


class MetricsAccess(NamedTuple):
    is_secured: bool = False
    token_file: str | None = None

    @classmethod
    def of(cls, config: BrokerConfig) -> "MetricsAccess":
        """Refusal when the token cannot be read or is too short."""
        path = config[TOKEN] or None
        if path is not None:
            _token(path)
        return cls(is_secured(config), path)

    async def allows(self, host: str, authorization: bytes) -> bool:
        """`authorization` is the header's value. The file is read again: its content may change at any time."""
        if self.token_file is None:
            return not self.is_secured or _is_own_machine(host)
        try:
            token = await asyncio.to_thread(_token, self.token_file)
        except Refusal as refusal:
            log.error("/metrics is shown to nobody: %s", refusal)
            return False
        shown = authorization[len(BEARER) :].strip() if authorization[: len(BEARER)].lower() == BEARER else b""
        return hmac.compare_digest(shown, token)


def is_secured(config: BrokerConfig) -> bool:
    """Whether somebody needs a key to get in anywhere. A node that is rolled to TLS and takes both does not yet."""
    accepts = config["ottla.grpc.accept"] or (config["ottla.grpc.protocol"],)
    asks_clients = any(endpoint.protocol != "PLAINTEXT" for endpoint in config.listeners)
    return asks_clients or "PLAINTEXT" not in accepts or bool(config["authorizer.class.name"])


def _token(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            token = file.read(TOKEN_BYTES_MAX).strip()
    except OSError as error:
        raise Refusal(f"{TOKEN}={path} cannot be read: {error.strerror}") from None
    if len(token) < TOKEN_CHARACTERS_MIN:
        raise Refusal(f"{TOKEN}={path}: a token has at least {TOKEN_CHARACTERS_MIN} characters")
    return token


def _is_own_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
