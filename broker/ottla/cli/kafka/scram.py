"""SASL SCRAM, the client's side (RFC 5802). Pure; `security.core.scram` is the server's."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Generator

from ottla.metadata.model.credentials import MECHANISM_NAMES, hash_name, salted_password

__all__ = ["NotTheServer", "messages"]

ITERATIONS_MAX = 1_000_000  # a second of work
NUMBERS = {name: number for number, name in MECHANISM_NAMES.items()}


class NotTheServer(Exception):
    """What answers does not know the password either, or does not speak SCRAM."""


def messages(mechanism: str, user: str, password: str, *, nonce: str) -> Generator[bytes, bytes, None]:
    """What the client says; it is sent each answer. NotTheServer when the last one proves nothing."""
    number = NUMBERS[mechanism]
    digest = hash_name(number)
    bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    answer = yield f"n,,{bare}".encode()
    first = answer.decode(errors="replace")
    nonces, salt, iterations = _first(first, nonce)
    salted = salted_password(number, password, salt=salt, iterations=iterations)
    unproved = f"c=biws,r={nonces}"
    said = f"{bare},{first},{unproved}".encode()
    key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, key).digest(), said, digest)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    answer = yield f"{unproved},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), said, digest)
    if not hmac.compare_digest(answer, b"v=" + base64.b64encode(expected)):
        raise NotTheServer("it does not know the password of the user either")


def _first(text: str, nonce: str) -> tuple[str, bytes, int]:
    parts = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    try:
        nonces, salt, iterations = parts["r"], base64.b64decode(parts["s"], validate=True), int(parts["i"])
    except (KeyError, ValueError, binascii.Error):
        raise NotTheServer("its answer is none of SCRAM") from None
    if not nonces.startswith(nonce) or not 0 < iterations <= ITERATIONS_MAX:
        raise NotTheServer("its answer belongs to another login")
    return nonces, salt, iterations
