"""What `ottla format --add-scram` is given, in the words of Kafka's storage tool:

SCRAM-SHA-256=[name=alice,password=secret,iterations=8192]
SCRAM-SHA-512=[name=alice,salt=<base64>,saltedpassword=<base64>]
"""

import base64
import binascii
from collections.abc import Callable

from ottla.errors import KafkaError, Refusal
from ottla.metadata.decisions.commands import ScramUpsertion
from ottla.metadata.decisions.users import check_credential
from ottla.metadata.model.credentials import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_NAMES,
    SALT_SEED_BYTES,
    ScramCredential,
    ScramKeys,
    hash_size,
    readable_salt,
    salted_password,
    scram_keys,
)
from ottla.metadata.model.records import Record, scram_credential_record

__all__ = ["scram_record"]

KEYS = ("name", "password", "iterations", "salt", "saltedpassword")


def scram_record(argument: str, *, random_bytes: Callable[[int], bytes]) -> Record:
    """Refusal for what Kafka's tool would not take; it never repeats a password."""
    mechanism, parts = _parsed(argument.strip())
    salt = _from_base64("salt", parts["salt"]) if "salt" in parts else readable_salt(random_bytes(SALT_SEED_BYTES))
    iterations = _number(parts.get("iterations", str(ITERATIONS_MIN)))
    if "password" in parts:
        salted = salted_password(mechanism, parts["password"], salt=salt, iterations=iterations)
    elif "salt" in parts and "saltedpassword" in parts:
        salted = _from_base64("saltedpassword", parts["saltedpassword"])
    else:
        raise Refusal("--add-scram: password is missing (or salt and saltedpassword)")
    keys = scram_keys(mechanism, salted) if len(salted) == hash_size(mechanism) else ScramKeys(b"", b"")
    upsertion = ScramUpsertion(parts["name"], mechanism, salt, iterations, keys)
    try:
        check_credential(upsertion)
    except KafkaError as error:
        raise Refusal(f"--add-scram: {error.message}") from None
    return scram_credential_record((upsertion.user, mechanism), ScramCredential(salt, iterations, keys))


def _parsed(argument: str) -> tuple[int, dict[str, str]]:
    name, equals, rest = argument.partition("=")
    mechanism = next((number for number, known in MECHANISM_NAMES.items() if known == name), None)
    if not equals or mechanism is None:
        raise Refusal(f"--add-scram: SCRAM-SHA-256=[…] or SCRAM-SHA-512=[…] is expected, not {name[:20]!r}")
    if not (rest.startswith("[") and rest.endswith("]")):
        raise Refusal(f"--add-scram: what {name} is given stands in square brackets: {name}=[name=alice,password=…]")
    parts: dict[str, str] = {}
    for part in rest[1:-1].split(","):
        key, equals, value = part.partition("=")
        if not equals or key not in KEYS:
            raise Refusal(f"--add-scram: {', '.join(KEYS)} are known, each with = and a value, and none has a comma")
        parts[key] = value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value
    if "name" not in parts:
        raise Refusal("--add-scram: name is missing")
    return mechanism, parts


def _number(text: str) -> int:
    """Also a bound of the work that follows."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Refusal(f"--add-scram: iterations={text[:20]} is no number")
    if not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise Refusal(f"--add-scram: iterations={text} is not within {ITERATIONS_MIN} and {ITERATIONS_MAX}")
    return int(text)


def _from_base64(key: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Refusal(f"--add-scram: {key} is not Base64") from None
