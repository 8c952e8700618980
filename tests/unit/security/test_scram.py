"""SCRAM, the server's side, against the client's side of kafka-python and against messages made by hand."""

import asyncio
import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from itertools import count
from random import Random
from time import thread_time

import pytest
from kafka.net.sasl.scram import ScramClient
from ottla.cli.scram_argument import scram_record
from ottla.metadata.model.credentials import (
    SALT_SEED_BYTES,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    PreviousKeys,
    ScramCredential,
    readable_salt,
    salted_password,
    scram_keys,
)
from ottla.security.core.logins import Exchange, Login, LoginRefused, Step
from ottla.security.core.oauthbearer import OPENING
from ottla.security.core.principals import Principal
from ottla.security.core.scram import (
    CLIENT_FINAL,
    CLIENT_FIRST,
    EXTENSIONS_MAX,
    MESSAGE_BYTES_MAX,
    ScramMechanism,
    accounts_of,
    decoy_key,
    iterations_in_use,
)
from ottla.wire.text_limits import TEXT_BYTES_MAX

SALT, ITERATIONS = b"a salt of somebody", 4096
REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
NOW_MS, LATER_MS = 1_000, 2_000


def credential(password: str, mechanism: int = SCRAM_SHA_256, *, before: str | None = None) -> ScramCredential:
    def keys(each: str):
        return scram_keys(mechanism, salted_password(mechanism, each, salt=SALT, iterations=ITERATIONS))

    previous = None if before is None else PreviousKeys(keys(before), LATER_MS)
    return ScramCredential(SALT, ITERATIONS, keys(password), previous)


def server(
    users: dict[str, ScramCredential], mechanism: int = SCRAM_SHA_256, now_ms: Callable[[], int] = lambda: NOW_MS
) -> ScramMechanism:
    kept = {(name, mechanism): each for name, each in users.items()}
    numbers = count()
    return ScramMechanism(
        mechanism,
        accounts=accounts_of(mechanism, lambda: kept),
        random_bytes=lambda size: next(numbers).to_bytes(size, "big"),
        now_ms=now_ms,
        decoy_key=lambda: b"nobody knows",
        iterations=lambda: iterations_in_use(kept, mechanism),
    )


def step(exchange: Exchange, data: bytes) -> Step:
    return asyncio.run(exchange.step(data))


def login(mechanism: ScramMechanism, name: str, password: str) -> Login:
    client, exchange = ScramClient(name, password, mechanism.name), mechanism.begin("host")
    client.process_server_first_message(step(exchange, client.first_message()).challenge)
    last = step(exchange, client.final_message())
    client.process_server_final_message(last.challenge)  # the server proved that it knows the password
    assert last.login is not None
    return last.login


def refusal(exchange: Exchange, data: bytes) -> LoginRefused:
    with pytest.raises(LoginRefused) as caught:
        step(exchange, data)
    with pytest.raises(LoginRefused):  # and it is over
        step(exchange, data)
    return caught.value


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_the_right_password(mechanism: int) -> None:
    users = server({"ann": credential("secret", mechanism)}, mechanism)
    assert login(users, "ann", "secret") == (Principal("User", "ann"), None, False)


def test_one_of_rfc_7677() -> None:
    """Its example, with its nonces."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    keys = scram_keys(SCRAM_SHA_256, salted_password(SCRAM_SHA_256, "pencil", salt=salt, iterations=4096))
    users = server({"user": ScramCredential(salt, 4096, keys)})
    nonce = b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    exchange = users.begin("host")
    step(exchange, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    exchange._nonce = "rOprNGfwEbeRWgbNEkqO" + nonce.decode()  # type: ignore[attr-defined]
    first = b"r=rOprNGfwEbeRWgbNEkqO" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    exchange._said = f"n=user,r=rOprNGfwEbeRWgbNEkqO,{first.decode()},"  # type: ignore[attr-defined]
    final = step(
        exchange, b"c=biws,r=rOprNGfwEbeRWgbNEkqO" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final.challenge == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_both_passwords_are_good_until_the_deadline() -> None:
    now = [NOW_MS]
    users = server({"ann": credential("new", before="old")}, now_ms=lambda: now[0])
    assert login(users, "ann", "new") == login(users, "ann", "old")
    now[0] = LATER_MS
    assert login(users, "ann", "new")
    with pytest.raises(LoginRefused):
        login(users, "ann", "old")


@pytest.mark.parametrize(("name", "why"), [("ann", "wrong password"), ("bob", "no such user")])
def test_wrong_password_and_unknown_user_are_the_same_to_a_client(name: str, why: str) -> None:
    users = server({"ann": credential("secret")})
    with pytest.raises(LoginRefused) as caught:
        login(users, name, "guess")
    assert (str(caught.value), caught.value.reason) == (REFUSED, why)
    assert caught.value.principal == Principal("User", name)


def test_somebody_unknown_has_a_salt_of_their_own_that_stays() -> None:
    users = server({"ann": credential("secret")})

    def shown(name: bytes) -> bytes:
        return step(users.begin("host"), b"n,,n=%s,r=nonce" % name).challenge.split(b",", 1)[1]

    assert shown(b"bob") == shown(b"bob") != shown(b"eve")
    assert shown(b"bob").endswith(b",i=4096")
    assert len(base64.b64decode(shown(b"bob").split(b",")[0][2:])) in (24, 25, 26)


def test_salts_are_like_those_of_kafkas_tools() -> None:
    """new BigInteger(130, random).toString(36): two in five have 26 digits."""
    assert readable_salt(b"\xff" * 64) == b"%s" % _to_base_36((1 << 130) - 1)
    random = Random(1)
    lengths = [len(readable_salt(random.randbytes(SALT_SEED_BYTES))) for _ in range(2_000)]
    assert set(lengths) <= {22, 23, 24, 25, 26} and 0.37 < lengths.count(26) / len(lengths) < 0.43


def test_salts_of_our_own_tool_are_too() -> None:
    record = scram_record("SCRAM-SHA-256=[name=ann,password=secret]", random_bytes=Random(1).randbytes)
    assert re.fullmatch(b"[0-9a-z]{22,26}", record.scram_credential.salt)


def _to_base_36(number: int) -> bytes:
    text = ""
    while number:
        text = "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36] + text
        number //= 36
    return text.encode()


def test_iterations_of_somebody_unknown_are_among_those_in_use() -> None:
    """By name, and another number of somebody else moves few; the salt of those moves, too."""
    users = {"ann": credential("secret"), "bea": ScramCredential(SALT, 8192, credential("x").keys)}
    one, two = server({"bea": users["bea"]}), server(users)
    names = [f"name {number}" for number in range(300)]
    assert {one.decoy(name).credential.iterations for name in names} == {8192}
    assert one.decoy("name 1", by_token=True).credential.iterations == ITERATIONS
    shown = [two.decoy(name).credential for name in names]
    assert 90 < sum(each.iterations == 8192 for each in shown) < 210
    for name, each in zip(names, shown, strict=True):
        assert (each.salt == one.decoy(name).credential.salt) == (each.iterations == 8192)
    assert server({}).decoy("ann").credential.iterations == 4096


def test_names_are_escaped() -> None:
    users = server({"a,b=c": credential("secret"), "ä": credential("secret")})
    first = step(users.begin("host"), b"n,,n=a=2Cb=3Dc,r=nonce")
    assert base64.b64encode(SALT) in first.challenge
    assert base64.b64encode(SALT) in step(users.begin("host"), "n,,n=ä,r=nonce".encode()).challenge


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"p=tls-unique,,n=ann,r=nonce",  # channel binding was not offered
        b"x,,n=ann,r=nonce",
        b"n,n=ann,r=nonce",
        b"n,,m=must,n=ann,r=nonce",  # a mandatory extension: nobody knows it
        b"n,,n=,r=nonce",
        b"n,,n=ann,r=",
        b"n,,n=an=n,r=nonce",  # an escape that is none
        b"n,,n=an\0n,r=nonce",
        b"n,,n=ann,r=no nce",
        b"n,,n=ann,r=nonce,",
        b"n,,n=\xff\xfe,r=nonce",
        b"n,,n=ann,r=" + b"x" * 1025,
        b"n,,n=" + b"x" * MESSAGE_BYTES_MAX + b",r=nonce",
        b"n,,n=" + b"x" * (TEXT_BYTES_MAX + 1) + b",r=nonce",  # nobody can have that name
        b"n,,n=ann,r=nonce" + b",x=y" * (EXTENSIONS_MAX + 1),
    ],
)
def test_first_messages_that_are_none(message: bytes) -> None:
    assert str(refusal(server({"ann": credential("secret")}).begin("host"), message)) == REFUSED


def test_the_longest_name_logs_in_however_it_is_written() -> None:
    name = "=" * TEXT_BYTES_MAX
    shown = step(server({name: credential("secret")}).begin("host"), b"n,,n=%s,r=nonce" % (b"=3D" * TEXT_BYTES_MAX))
    assert base64.b64encode(SALT) in shown.challenge


def test_a_name_that_nobody_can_have_reaches_no_account() -> None:
    """Neither a lookup nor a decoy is made of it, and it is in no event."""
    users = server({})
    users.accounts = lambda name, by_token: pytest.fail("looked up")
    refused = refusal(users.begin("host"), b"n,,n=" + b"u" * 130_000 + b",r=nonce")
    assert refused.principal is None and "a name of more than" in refused.reason


@pytest.mark.parametrize(
    ("pattern", "begin", "part", "end"),
    [
        (CLIENT_FIRST, "n,,n=", "u", ",r=abc"),
        (CLIENT_FIRST, "n,,n=", "u", ""),
        (CLIENT_FIRST, "n,,n=", "u=2C", ",r=abc"),
        (CLIENT_FIRST, "n,a=b,n=", "=3D", "="),
        (CLIENT_FIRST, "n,a=", "u", ",n="),
        (CLIENT_FIRST, "n,,n=a,r=b", ",x=y", ",1"),
        (CLIENT_FIRST, "n,,n=a,r=b", "b", ",x"),
        (CLIENT_FINAL, "c=", "A", ""),
        (CLIENT_FINAL, "c=A,r=b", ",x=y", ",p="),
        (OPENING, "n,a=", "u", ",\x01"),
        (OPENING, "n,,\x01", "x=y\x01", "\x01"),
        (OPENING, "n,,\x01auth=", "b", "\x01"),
    ],
    ids=map(str, range(12)),
)
def test_a_long_message_costs_what_its_length_says(pattern: re.Pattern[str], begin: str, part: str, end: str) -> None:
    """Under half a millisecond for 128 KiB, where some took 15: eight leave room for a busy machine."""
    message = begin + part * ((MESSAGE_BYTES_MAX - 100) // len(part)) + end
    spent_s = []
    for _ in range(5):
        began_s = thread_time()
        pattern.fullmatch(message)
        spent_s.append(thread_time() - began_s)
    assert min(spent_s) < 0.008


def test_decoys_stay_when_passwords_change() -> None:
    """Where brokers share a secret. Without one they follow from the oldest user's password."""
    before, after = ({("ann", SCRAM_SHA_256): credential(each)} for each in ("one", "two"))
    assert decoy_key(before, "id", "secret") == decoy_key(after, "id", "secret") == decoy_key({}, "id", "secret")
    assert decoy_key(before, "id", "secret") != decoy_key(before, "id", "another")
    assert decoy_key(before, "id") == before["ann", SCRAM_SHA_256].keys.server != decoy_key(after, "id")


def test_to_act_for_somebody_else_is_refused() -> None:
    users = server({"ann": credential("secret")})
    assert "authorization id" in str(refusal(users.begin("host"), b"n,a=bob,n=ann,r=nonce"))
    assert step(users.begin("host"), b"n,a=ann,n=ann,r=nonce").challenge


def final(exchange: Exchange, *, header: bytes = b"n,,", nonce: bytes | None = None, **changes: bytes) -> bytes:
    """A final message with the right proof, or with parts that are not right."""
    bare = b"n=ann,r=nonce"
    first = step(exchange, header + bare).challenge
    nonce = nonce or first.split(b",")[0][2:]
    unproved = b"c=%s,r=%s" % (base64.b64encode(changes.get("said", header)), nonce)
    salted = salted_password(SCRAM_SHA_256, "secret", salt=SALT, iterations=ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    said = b",".join((bare, first, unproved))
    signature = hmac.digest(hashlib.sha256(client_key).digest(), said, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return unproved + b",p=" + base64.b64encode(changes.get("proof", proof))


def test_a_client_that_could_bind_channels_says_so_in_both_messages() -> None:
    users = server({"ann": credential("secret")})
    exchange = users.begin("host")
    assert step(exchange, final(exchange, header=b"y,,")).login
    exchange = users.begin("host")
    assert str(refusal(exchange, final(exchange, header=b"y,,", said=b"n,,"))) == REFUSED


@pytest.mark.parametrize("wrong", [{"nonce": b"another"}, {"proof": b"short"}, {"proof": b""}, {"proof": bytes(32)}])
def test_wrong_final_messages(wrong: dict[str, bytes]) -> None:
    exchange = server({"ann": credential("secret")}).begin("host")
    assert str(refusal(exchange, final(exchange, **wrong))) == REFUSED


def test_a_final_message_is_good_in_its_exchange_only() -> None:
    users = server({"ann": credential("secret")})
    first = users.begin("host")
    replayed = final(first)
    assert step(first, replayed).login
    again = users.begin("host")
    step(again, b"n,,n=ann,r=nonce")
    assert refusal(again, replayed).reason == "a nonce that is not of this exchange"


def test_tokens_are_no_users() -> None:
    users = server({"ann": credential("secret")})
    shown = step(users.begin("host"), b"n,,n=ann,r=nonce,tokenauth=true").challenge
    assert base64.b64encode(SALT) not in shown


def test_nothing_secret_is_shown() -> None:
    kept = credential("secret", before="old")
    for text in (repr(kept), str(kept), repr(kept.keys), repr(kept.previous)):
        assert str(kept.keys.stored)[2:-1] not in text
        assert str(kept.salt)[2:-1] not in text


def mutated(random: Random, message: bytes) -> bytes:
    data = bytearray(message)
    for _ in range(random.randrange(1, 4)):
        at, deed = random.randrange(len(data) + 1), random.randrange(4)
        if deed == 0 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif deed == 1:
            data[at:at] = random.choice((b"=", b",", b"\0", b"=2C", b"p=", b",tokenauth=true", b"\xff"))
        elif deed == 2:
            del data[at : at + random.randrange(1, 9)]
        else:
            data += data[at:]
    return bytes(data)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_messages_log_nobody_in(seed: int) -> None:
    """Only who has sent what the right client would have sent, byte by byte, is in."""
    random = Random(seed)
    users = server({"ann": credential("secret")})
    for _ in range(400):
        exchange = users.begin("host")
        try:
            if random.random() < 0.5:
                step(exchange, mutated(random, b"n,,n=ann,r=nonce"))
                continue
            right = final(exchange)
            wrong = mutated(random, right)
            logged_in = step(exchange, wrong).login is not None
            assert not logged_in or wrong == right
        except LoginRefused:
            continue
