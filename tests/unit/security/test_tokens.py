"""Delegation tokens at a broker: found by their MACs, and logged in with by SCRAM."""

import asyncio
import base64
import hashlib
import hmac
from typing import Any

import pytest
from kafka.net.sasl.scram import ScramClient
from ottla.metadata.model.credentials import SCRAM_SHA_256, SCRAM_SHA_512
from ottla.metadata.model.tokens import DelegationToken, token_mac, token_password
from ottla.security.core.logins import Login, LoginRefused
from ottla.security.core.principals import Principal
from ottla.security.core.scram import ScramMechanism, accounts_of
from ottla.security.core.tokens import CREDENTIALS_KEPT_MAX, TokenAccounts, TokenMacs

KEY = "the fleet's secret"


def token(token_id: str, **changes: Any) -> DelegationToken:
    fields = {"owner": "User:ann", "requester": "User:ann", "renewers": (), "issued_ms": 0, "expires_ms": 50,
              "expires_ms_max": 100}  # fmt: skip
    return DelegationToken(id=token_id, **{**fields, **changes})


def test_the_mac_is_kafkas() -> None:
    assert token_mac(KEY, "id") == hmac.new(KEY.encode(), b"id", hashlib.sha512).digest()


def test_tokens_are_found_by_their_macs_as_long_as_they_are_there() -> None:
    kept: dict[str, DelegationToken] = {"a": token("a")}
    images = [kept]
    macs = TokenMacs(KEY, lambda: images[-1])
    assert macs.find(token_mac(KEY, "a")) is kept["a"]
    assert macs.find(token_mac("another key", "a")) is None
    images.append({"b": token("b")})
    assert macs.find(token_mac(KEY, "a")) is None
    assert macs.find(token_mac(KEY, "b")) == token("b")
    assert macs.mac("b") == token_mac(KEY, "b")


def test_without_a_key_there_are_none() -> None:
    macs = TokenMacs(None, lambda: {"a": token("a")})
    assert not macs.is_enabled
    assert macs.find(token_mac("", "a")) is None


def login(mechanism: int, tokens: dict[str, DelegationToken], name: str, password: str, *, now_ms: int = 10) -> Login:
    def clock() -> int:
        return now_ms

    accounts = TokenAccounts(mechanism, secret_key=KEY, tokens=lambda: tokens, now_ms=clock)
    server = ScramMechanism(
        mechanism,
        accounts=accounts_of(mechanism, dict, accounts.find),
        random_bytes=bytes,
        now_ms=clock,
        decoy_key=lambda: b"decoy",
    )
    client, exchange = ScramClient(name, password, server.name), server.begin("host")
    client.auth_message += b""
    first = client.first_message() + b",tokenauth=true"
    client.auth_message = first[3:]
    client.process_server_first_message(asyncio.run(exchange.step(first)).challenge)
    step = asyncio.run(exchange.step(client.final_message()))
    client.process_server_final_message(step.challenge)
    assert step.login is not None
    return step.login


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_whoever_has_the_mac_is_the_owner_until_it_expires(mechanism: int) -> None:
    password = token_password(token_mac(KEY, "a"))
    assert password == base64.b64encode(token_mac(KEY, "a")).decode()
    found = login(mechanism, {"a": token("a")}, "a", password)
    assert found == Login(Principal("User", "ann"), 50, by_delegation_token=True)
    for tokens, now_ms in (({"a": token("a")}, 51), ({}, 10)):
        with pytest.raises(LoginRefused):
            login(mechanism, tokens, "a", password, now_ms=now_ms)
    with pytest.raises(LoginRefused):
        login(mechanism, {"a": token("a")}, "a", "guess")


def test_only_so_many_credentials_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {str(n): token(str(n)) for n in range(CREDENTIALS_KEPT_MAX + 5)}
    accounts = TokenAccounts(SCRAM_SHA_256, secret_key=KEY, tokens=lambda: many, now_ms=lambda: 0)
    first = accounts.find("0")
    assert first is not None
    monkeypatch.setattr(accounts, "_make", lambda token_id: first.credential)
    for token_id in many:
        accounts.find(token_id)
    assert len(accounts._kept) == CREDENTIALS_KEPT_MAX
