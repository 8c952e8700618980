"""Attempts to log in without a password, a token or a certificate that counts, most of them damaged; by a seed.

Each attempt ends with what only somebody who is logged in may ask: `STOLEN` must not come to be.
"""

import base64
import contextlib
import re
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec
from support.frames import framed
from support.jwt_issuer import HOUR_S, JwtIssuer
from support.mutations import mutate, mutated_requests
from support.raw_requests import header, text
from support.sasl_bytes import api_versions, authenticate, handshake, metadata, plain, raw

__all__ = ["STOLEN", "Attempt", "attempted_handshakes", "attempted_logins", "refused_tokens"]

STOLEN = "stolen"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OFFERED_NONCE = re.compile(rb"r=([!-~]+?),s=")
CHANGES_MAX = 3


class Attempt(NamedTuple):
    """`then` makes what follows of what the broker said to `first`, which may be nothing."""

    first: bytes
    then: Callable[[bytes], bytes] | None = None


def create_topic(name: str) -> bytes:
    topic = text(name) + struct.pack(">ih", 1, 1) + struct.pack(">ii", 0, 0)
    return framed(header(19, 0) + struct.pack(">i", 1) + topic + struct.pack(">i", 10_000))


DEMAND = create_topic(STOLEN) + metadata()


def attempted_logins(random: Random, known: Sequence[str], tokens: Sequence[str]) -> Iterator[Attempt]:
    """Without end. `known`: names that exist; `tokens`: what may be said to OAUTHBEARER."""
    others = mutated_requests(random, known)
    while True:
        kind = random.random()
        if kind < 0.6:
            yield Attempt(damaged(random, b"".join(confused(random, others))) + DEMAND)
        elif kind < 0.8:
            opening = oauth_opening(random, random.choice(tokens))
            yield Attempt(handshake("OAUTHBEARER") + authenticate(damaged(random, opening)) + DEMAND)
        else:
            yield scram(random)


def confused(random: Random, others: Iterator[bytes]) -> Iterator[bytes]:
    """Parts of logins in any order, of any mechanism, between requests of any kind."""
    wrong = [plain("bob", "wrong"), plain("eve"), random.randbytes(random.randrange(60)), b"", plain("bob", "")]
    for _ in range(random.randrange(1, 6)):
        yield random.choice([
            api_versions(), handshake(), handshake(version=0), handshake(random.choice(SCRAM)), metadata(),
            authenticate(random.choice(wrong)), raw(random.choice(wrong)), next(others),
        ])  # fmt: skip


def oauth_opening(random: Random, token: str) -> bytes:
    said = bytearray(token.encode())
    if random.random() < 0.5:
        mutate(said, random)
    start = random.choice([b"n,,", b"n,a=bob,", b"y,,", b"n,a=,"])
    return start + b"\x01auth=" + random.choice([b"Bearer ", b"bearer  ", b""]) + bytes(said) + b"\x01\x01"


def scram(random: Random) -> Attempt:
    """The second message has the nonce that the broker offered, or another; the proof is always a guess."""
    mechanism, nonce = random.choice(SCRAM), base64.b64encode(random.randbytes(12))
    start = random.choice([b"n,,", b"y,,", b"n,a=bob,", b"p=tls-unique,,", b"n,a=eve,"])
    more = random.choice([b"", b"", b",tokenauth=true", b",x=y"])
    opening = start + b"n=" + random.choice([b"bob", b"eve", b"=2C", b"\xc3\xa9" * 30]) + b",r=" + nonce + more
    if random.random() < 0.3:
        opening = damaged(random, opening)
    proof = base64.b64encode(random.randbytes(random.choice([0, 31, 32, 32, 64, 64, 200])))
    binding, harm = base64.b64encode(start), Random(random.getrandbits(64))

    def then(heard: bytes) -> bytes:
        found = OFFERED_NONCE.search(heard)
        last = b"c=" + binding + b",r=" + (found[1] if found else nonce) + b",p=" + proof
        return authenticate(damaged(harm, last) if harm.random() < 0.5 else last) + DEMAND

    return Attempt(handshake(mechanism) + authenticate(opening), then)


def damaged(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randrange(CHANGES_MAX)):
        mutate(changed, random)
    return bytes(changed)


def refused_tokens(issuer: JwtIssuer) -> list[str]:
    """Nearly good ones, not signed ones, and no tokens at all."""
    now_s, stranger, secret = int(time.time()), ec.generate_private_key(ec.SECP256R1()), b"a shared secret" * 3
    return [
        issuer.token(exp=now_s - HOUR_S), issuer.token(nbf=now_s + 9 * HOUR_S), issuer.token(aud="others"),
        issuer.token(iss="https://other"), issuer.token(by=stranger), issuer.token(by=stranger, key_id="\0" * 100),
        issuer.token(by=secret, algorithm="HS256"), issuer.token(by="", algorithm="none"), "a.b.c", "..", "",
        "A" * 5000,
    ]  # fmt: skip


def attempted_handshakes(random: Random, certificates: Sequence[str | None]) -> Iterator[Attempt]:
    """Two flights of TLS, with one of these files or without any."""
    contexts = [client_context(each) for each in certificates]
    while True:
        yield half_handshake(random.choice(contexts), Random(random.getrandbits(64)))


def client_context(certificate: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


def half_handshake(context: ssl.SSLContext, random: Random) -> Attempt:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing)

    def flight(share_damaged: float) -> bytes:
        with contextlib.suppress(ssl.SSLError):
            tls.do_handshake()
        with contextlib.suppress(ssl.SSLError):
            tls.write(create_topic(STOLEN))
        data = outgoing.read()
        return damaged(random, data) if random.random() < share_damaged else data

    def then(heard: bytes) -> bytes:
        incoming.write(heard)
        return flight(0.9)

    return Attempt(flight(0.7), then)
