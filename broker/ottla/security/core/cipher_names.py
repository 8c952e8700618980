"""Cipher suites by the names of Kafka's settings, which are Java's, as OpenSSL calls them. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["BadCiphers", "Ciphers", "ciphers_of"]

TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
EXCHANGES = {"ECDHE_ECDSA": "ECDHE-ECDSA", "ECDHE_RSA": "ECDHE-RSA", "DHE_RSA": "DHE-RSA", "RSA": ""}
BULKS = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}
NONEXISTENT = {
    ("ECDHE_ECDSA", "AES_256_CBC_SHA256"), ("ECDHE_RSA", "AES_256_CBC_SHA256"), ("DHE_RSA", "AES_256_CBC_SHA384"),
    ("RSA", "AES_256_CBC_SHA384"), ("RSA", "CHACHA20_POLY1305_SHA256"),
}  # fmt: skip
TLS_1_2 = {
    f"TLS_{exchange}_WITH_{bulk}": "-".join(filter(None, (EXCHANGES[exchange], BULKS[bulk])))
    for exchange in EXCHANGES
    for bulk in BULKS
    if (exchange, bulk) not in NONEXISTENT
}


class BadCiphers(ValueError):
    """The text says which, and what to do."""


class Ciphers(NamedTuple):
    of_1_2: str
    """For OpenSSL; empty when none of TLS 1.2 is allowed."""
    any_of_1_3: bool


def ciphers_of(names: Sequence[str]) -> Ciphers:
    """Those allowed; without names the library's own choice."""
    if unknown := [name for name in names if name not in TLS_1_3 and name not in TLS_1_2]:
        raise BadCiphers(f"ssl.cipher.suites: {unknown[0]} is unknown; known are {', '.join((*TLS_1_3, *TLS_1_2))}")
    chosen = [name for name in names if name in TLS_1_3]
    if chosen and len(set(chosen)) < len(TLS_1_3):
        raise BadCiphers(
            f"ssl.cipher.suites: those of TLS 1.3 cannot be chosen from here; name all of {', '.join(TLS_1_3)}, or none"
        )
    return Ciphers(":".join(TLS_1_2[name] for name in names if name in TLS_1_2), bool(chosen))
