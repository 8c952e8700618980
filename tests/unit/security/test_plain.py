"""SASL/PLAIN: what Kafka lets in, and its sentences for what it does not."""

import asyncio

import pytest
from ottla.security.core.logins import Login, LoginRefused, Step
from ottla.security.core.plain import PlainMechanism
from ottla.security.core.principals import USER, Principal

USERS = {"bob": "pa ss", "ünï": "日本"}
WRONG = "Authentication failed: Invalid username or password"
NO_PASSWORD, NO_NAME = "Authentication failed: password not specified", "Authentication failed: username not specified"
MALFORMED = "Invalid SASL/PLAIN response: expected 3 tokens, got "


def step(data: bytes) -> Step:
    return asyncio.run(PlainMechanism(lambda: USERS).begin("127.0.0.1").step(data))


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\0bob\0pa ss", "bob"),
        (b"bob\0bob\0pa ss", "bob"),
        ("\0ünï\0日本".encode(), "ünï"),
    ],
)
def test_who_is_let_in(data: bytes, name: str) -> None:
    assert step(data) == Step(b"", Login(Principal(USER, name)))


@pytest.mark.parametrize(
    ("data", "sentence", "reason"),
    [
        (b"\0bob\0wrong", WRONG, "wrong password"),
        (b"\0eve\0pa ss", WRONG, "unknown user"),
        (b"\0eve\0\xff", WRONG, "unknown user"),
        (b"\0bob\0", NO_PASSWORD, NO_PASSWORD),
        (b"\0\0x", NO_NAME, NO_NAME),
        (b"", f"{MALFORMED}1", f"{MALFORMED}1"),
        (b"\xff\xfe\0", f"{MALFORMED}2", f"{MALFORMED}2"),
        (b"\0bob\0pa ss\0more\0still", f"{MALFORMED}4", f"{MALFORMED}4"),
        (
            b"eve\0bob\0pa ss",
            "Authentication failed: Client requested an authorization id that is different from username",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_who_is_not(data: bytes, sentence: str, reason: str) -> None:
    """The client does not learn which half was wrong; the audit log does."""
    with pytest.raises(LoginRefused) as refused:
        step(data)
    assert (str(refused.value), refused.value.reason) == (sentence, reason)
