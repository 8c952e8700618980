"""Delegation tokens: what the controller decides, and what the log keeps of them."""

import pytest
from ottla.errors import Code, KafkaError
from ottla.ids import uuid_from_text
from ottla.metadata.decisions.commands import (
    Command,
    CreateDelegationToken,
    EndDelegationToken,
    Limits,
    RenewDelegationToken,
)
from ottla.metadata.decisions.credential_expiry import expiry_due
from ottla.metadata.decisions.delegation_tokens import RENEWERS_MAX
from ottla.metadata.decisions.features import SECURITY_VERSION, SUPPORTED_FEATURES
from ottla.metadata.model.changes import compare
from ottla.metadata.model.image import Image
from ottla.metadata.model.tokens import DelegationToken
from ottla.rpc.packing import pack_command, pack_reply, unpack_command, unpack_reply
from support.decisions import Fleet

ANN, BOB, EVE, APP = "User:ann", "User:bob", "User:eve", "User:app"


def fleet_at(now_ms: int = 1000, **settings: object) -> Fleet:
    return Fleet(now_ms=now_ms, token_expiry_ms=100, token_lifetime_ms_max=500, **settings)


def create(fleet: Fleet, lifetime_ms: int = 0) -> DelegationToken:
    token: DelegationToken = fleet.ask(CreateDelegationToken(ANN, APP, [BOB], lifetime_ms))
    assert fleet.image.delegation_tokens[token.id] == token
    return token


def test_a_token_lives_until_it_must_be_renewed() -> None:
    fleet = fleet_at()
    token = create(fleet)
    assert uuid_from_text(token.id)
    assert token == DelegationToken(token.id, ANN, APP, (BOB,), 1000, 1100, 1500)
    assert (create(fleet, 50).expires_ms, create(fleet, 50).expires_ms_max) == (1050, 1050)
    assert create(fleet, 10_000).expires_ms_max == 1500, "longer than it may be"
    assert fleet.image.features[SECURITY_VERSION] == 1


@pytest.mark.parametrize("who", [ANN, BOB])
def test_owner_and_renewers_renew_and_end_it(who: str) -> None:
    fleet = fleet_at()
    token = create(fleet)
    fleet.settings["now_ms"] = 1050
    assert fleet.ask(RenewDelegationToken(token.id, who, 0)) == 1150
    assert fleet.ask(RenewDelegationToken(token.id, who, 20)) == 1070
    assert fleet.ask(EndDelegationToken(token.id, who, 60)) == 1110
    assert fleet.image.delegation_tokens[token.id].expires_ms == 1110
    assert fleet.ask(EndDelegationToken(token.id, who, 10_000)) == 1500, "its end stays"
    assert fleet.ask(EndDelegationToken(token.id, who, -1)) == 1050
    assert fleet.image.delegation_tokens == {}


@pytest.mark.parametrize("change", [RenewDelegationToken, EndDelegationToken])
def test_changes_that_are_refused(change: type[RenewDelegationToken]) -> None:
    fleet = fleet_at()
    token = create(fleet)

    def refused(token_id: str, who: str) -> Code:
        with pytest.raises(KafkaError) as caught:
            fleet.ask(change(token_id, who, 0))
        return caught.value.code

    assert refused("unknown", ANN) is Code.delegation_token_not_found
    assert refused(token.id, EVE) is Code.delegation_token_owner_mismatch
    assert refused(token.id, APP) is Code.delegation_token_owner_mismatch, "who only asked for it"
    fleet.settings["now_ms"] = 1101
    assert refused(token.id, ANN) is Code.delegation_token_expired


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (CreateDelegationToken(ANN, APP, ["Group:x"]), Code.invalid_principal_type),
        (CreateDelegationToken(ANN, APP, [BOB] * (RENEWERS_MAX + 1)), Code.invalid_request),
        (CreateDelegationToken("User:" + "x" * 32768, APP), Code.invalid_request),
    ],
)
def test_tokens_that_are_not_made(command: CreateDelegationToken, code: Code) -> None:
    fleet = fleet_at()
    with pytest.raises(KafkaError) as caught:
        fleet.ask(command)
    assert (caught.value.code, fleet.image.delegation_tokens) == (code, {})


def test_there_is_room_for_so_many() -> None:
    fleet = fleet_at(limits=Limits(tokens_in_fleet_max=1))
    create(fleet)
    with pytest.raises(KafkaError, match="room for 1 delegation tokens"):
        create(fleet)


def test_nobody_takes_the_share_of_others() -> None:
    fleet = fleet_at(limits=Limits(tokens_in_fleet_max=5, tokens_of_owner_max=2))
    first = create(fleet)
    create(fleet)
    with pytest.raises(KafkaError, match="User:ann has 2 delegation tokens, as many as one may") as caught:
        create(fleet)
    assert caught.value.code is Code.policy_violation
    fleet.ask(CreateDelegationToken(BOB, ANN))
    fleet.ask(EndDelegationToken(first.id, ANN, -1))
    create(fleet)


def test_older_brokers_keep_tokens_out() -> None:
    fleet = fleet_at()
    fleet.register(5, features={name: each for name, each in SUPPORTED_FEATURES.items() if name != SECURITY_VERSION})
    with pytest.raises(KafkaError) as caught:
        create(fleet)
    assert caught.value.code is Code.unsupported_version


def test_expired_ones_are_removed() -> None:
    fleet = fleet_at()
    short, long = create(fleet, 10), create(fleet)
    fleet.settings["now_ms"] = 1011
    due = expiry_due(fleet.image, fleet.context())
    assert due is not None
    fleet.ask(due)
    assert list(fleet.image.delegation_tokens) == [long.id]
    assert short.is_expired(1011)
    assert expiry_due(fleet.image, fleet.context()) is None


def test_they_survive_a_snapshot_and_travel_between_nodes() -> None:
    fleet = fleet_at()
    before = fleet.image
    token = create(fleet)
    assert Image.from_snapshot(fleet.image.to_snapshot()).delegation_tokens == {token.id: token}
    assert compare(before, fleet.image).delegation_tokens
    commands: list[tuple[Command[object], object]] = [
        (CreateDelegationToken(ANN, APP, [BOB]), token),  # type: ignore[list-item]
        (RenewDelegationToken(token.id, ANN, 5), 7),  # type: ignore[list-item]
        (EndDelegationToken(token.id, ANN, -1), 7),  # type: ignore[list-item]
    ]
    for command, reply in commands:
        assert unpack_command(*pack_command(command)) == command
        assert unpack_reply(command, pack_reply(reply)) == reply
