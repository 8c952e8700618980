"""The client's side of SCRAM against the broker's own."""

import asyncio
from collections.abc import Generator

import pytest
from ottla.cli.kafka.scram import NotTheServer, messages
from ottla.metadata.model.credentials import MECHANISM_NAMES, ScramCredential, salted_password, scram_keys
from ottla.security.core.logins import Login, LoginRefused
from ottla.security.core.principals import Principal
from ottla.security.core.scram import Account, ScramExchange, ScramMechanism

NAME, PASSWORD, SALT, ITERATIONS = "a,n=n", "pässword", b"some salt", 4096


def exchange_with(number: int) -> ScramExchange:
    keys = scram_keys(number, salted_password(number, PASSWORD, salt=SALT, iterations=ITERATIONS))
    account = Account(ScramCredential(SALT, ITERATIONS, keys), Principal("User", NAME))
    mechanism = ScramMechanism(
        number,
        accounts=lambda name, _: account if name == NAME else None,
        random_bytes=bytes,
        now_ms=lambda: 0,
        decoy_key=lambda: b"decoy",
    )
    return mechanism.begin("127.0.0.1")


def logged_in(exchange: ScramExchange, talk: Generator[bytes, bytes, None]) -> Login | None:
    message = next(talk)
    while True:
        step = asyncio.run(exchange.step(message))
        try:
            message = talk.send(step.challenge)
        except StopIteration:
            return step.login


@pytest.mark.parametrize(("number", "mechanism"), MECHANISM_NAMES.items())
def test_the_broker_knows_the_client_and_the_client_the_broker(number: int, mechanism: str) -> None:
    login = logged_in(exchange_with(number), messages(mechanism, NAME, PASSWORD, nonce="n"))
    assert login is not None and login.principal == Principal("User", NAME)
    with pytest.raises(LoginRefused):
        logged_in(exchange_with(number), messages(mechanism, NAME, "wrong", nonce="n"))


@pytest.mark.parametrize("answer", [b"", b"r=other,s=c2FsdA==,i=4096", b"r=n1,s=?,i=1", b"r=n1,s=c2FsdA==,i=99999999"])
def test_another_server_is_not_answered(answer: bytes) -> None:
    talk = messages("SCRAM-SHA-256", NAME, PASSWORD, nonce="n")
    next(talk)
    with pytest.raises(NotTheServer):
        talk.send(answer)


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    talk = messages("SCRAM-SHA-256", NAME, PASSWORD, nonce="n")
    next(talk)
    talk.send(b"r=n1,s=c2FsdA==,i=4096")
    with pytest.raises(NotTheServer, match="does not know the password"):
        talk.send(b"v=bm90aGluZw==")
