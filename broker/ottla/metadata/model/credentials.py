"""What the fleet keeps of its users' passwords: never the password, nor what could stand in for it. Pure, immutable.

RFC 5802: whoever has the stored key can check a proof but cannot make one; the server key proves the server to the
client. Both follow from the salted password, which is as good as the password and is not kept.
"""

import hashlib
import hmac
from collections.abc import Mapping

import msgspec

__all__ = [
    "ITERATIONS_MAX",
    "ITERATIONS_MIN",
    "MECHANISM_NAMES",
    "SALT_SEED_BYTES",
    "SCRAM_SHA_256",
    "SCRAM_SHA_512",
    "PreviousKeys",
    "ScramCredential",
    "ScramKeys",
    "ScramOwner",
    "hash_name",
    "hash_size",
    "readable_salt",
    "salted_password",
    "scram_keys",
]

# Kafka's numbers, and its bounds.
SCRAM_SHA_256, SCRAM_SHA_512 = 1, 2
MECHANISM_NAMES: Mapping[int, str] = {SCRAM_SHA_256: "SCRAM-SHA-256", SCRAM_SHA_512: "SCRAM-SHA-512"}
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
SALT_SEED_BYTES, SALT_BITS, SALT_DIGITS = 17, 130, "0123456789abcdefghijklmnopqrstuvwxyz"

ScramOwner = tuple[str, int]
"""User and mechanism: each has its own credential."""


class ScramKeys(msgspec.Struct, frozen=True, gc=False):
    stored: bytes
    server: bytes

    def __repr__(self) -> str:
        return "ScramKeys([hidden])"


class PreviousKeys(msgspec.Struct, frozen=True, gc=False):
    """Of the password before, which is good until then, too."""

    keys: ScramKeys
    until_ms: int


class ScramCredential(msgspec.Struct, frozen=True, gc=False):
    """During a rotation two passwords are good. Both have this salt and these iterations: a client gets to know them
    before the server can know which of the two it was given."""

    salt: bytes
    iterations: int
    keys: ScramKeys
    previous: PreviousKeys | None = None

    def live_keys(self, now_ms: int) -> tuple[ScramKeys, ...]:
        previous = self.previous
        return (self.keys, previous.keys) if previous is not None and now_ms < previous.until_ms else (self.keys,)

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations}, [hidden])"


def hash_name(mechanism: int) -> str:
    return "sha512" if mechanism == SCRAM_SHA_512 else "sha256"


def hash_size(mechanism: int) -> int:
    return hashlib.new(hash_name(mechanism)).digest_size


def readable_salt(seed: bytes) -> bytes:
    """A salt as Kafka's tools make it: a number of 130 bits to the base 36. One of another form would tell an account
    from the decoy of somebody who has none."""
    number, digits = int.from_bytes(seed[:SALT_SEED_BYTES], "big") >> (8 * SALT_SEED_BYTES - SALT_BITS), ""
    while number:
        number, digit = divmod(number, len(SALT_DIGITS))
        digits = SALT_DIGITS[digit] + digits
    return digits.encode() or b"0"


def salted_password(mechanism: int, password: str, *, salt: bytes, iterations: int) -> bytes:
    """Milliseconds of work: not for the loop. Like Kafka's clients, without SASLprep."""
    return hashlib.pbkdf2_hmac(hash_name(mechanism), password.encode(), salt, iterations)


def scram_keys(mechanism: int, salted: bytes) -> ScramKeys:
    digest = hash_name(mechanism)
    client_key = hmac.digest(salted, b"Client Key", digest)
    return ScramKeys(hashlib.new(digest, client_key).digest(), hmac.digest(salted, b"Server Key", digest))
