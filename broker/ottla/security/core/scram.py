"""SASL SCRAM-SHA-256 and SCRAM-SHA-512, the server's side (RFC 5802, RFC 7677). Pure.

    client: n,,n=alice,r=CLIENT                      server: r=CLIENT+SERVER,s=SALT,i=ITERATIONS
    client: c=biws,r=CLIENT+SERVER,p=PROOF           server: v=SIGNATURE

Somebody unknown is asked for a proof like everybody else, with a salt and iterations that stay the same for that name
and look like those of others, and is refused with the same words at the same place after the same work: who has an
account cannot be found out here.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import NamedTuple

from ottla.metadata.model.credentials import (
    ITERATIONS_MIN,
    MECHANISM_NAMES,
    ScramCredential,
    ScramKeys,
    ScramOwner,
    hash_name,
    hash_size,
    readable_salt,
)
from ottla.security.core.logins import Login, LoginRefused, Step
from ottla.security.core.principals import USER, Principal
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = [
    "Account",
    "Accounts",
    "ScramExchange",
    "ScramMechanism",
    "accounts_of",
    "decoy_key",
    "iterations_in_use",
    "no_tokens",
]

MESSAGE_BYTES_MAX = 1 << 17  # a user name has up to 32 KiB, and every byte of it may have to be escaped
CLIENT_NONCE_MAX = 1024
SERVER_NONCE_BYTES = 24
EXTENSIONS_MAX = 100
TOKEN_AUTH = "tokenauth"
LOOKED_AT_MAX = 256  # of the credentials, the oldest: at every login

# Possessive: what has matched is never tried again, so that a stranger's message costs what its length says.
NAME = r"(?:[^\x00,=]++|=2C|=3D)++"
EXTENSIONS = rf"(?P<extensions>(?:,(?!p=)[A-Za-z]++=[^\x00,]++){{0,{EXTENSIONS_MAX}}}+)"
CLIENT_FIRST = re.compile(
    rf"(?P<header>(?P<binding>[ny]|p=[A-Za-z0-9.-]++),(?:a=(?P<authorization>{NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]++){EXTENSIONS})"
)
CLIENT_FINAL = re.compile(
    rf"(?P<unproved>c=(?P<header>[A-Za-z0-9/+=]++),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]++){EXTENSIONS}),"
    r"p=(?P<proof>[A-Za-z0-9/+=]++)"
)


class Account(NamedTuple):
    """As whom somebody is logged in who proves to have the password."""

    credential: ScramCredential
    principal: Principal
    expires_at_ms: int | None = None
    by_delegation_token: bool = False


Accounts = Callable[[str, bool], Account | None]
"""By name; with True the name is the id of a delegation token."""


def no_tokens(token_id: str) -> None:
    """Where delegation tokens are not enabled."""


def accounts_of(
    mechanism: int,
    credentials: Callable[[], Mapping[ScramOwner, ScramCredential]],
    token: Callable[[str], Account | None] = no_tokens,
) -> Accounts:
    """Users with a credential; `token` finds whom a delegation token stands for."""

    def find(name: str, by_token: bool) -> Account | None:
        if by_token:
            return token(name)
        credential = credentials().get((name, mechanism))
        return None if credential is None else Account(credential, Principal(USER, name))

    return find


def decoy_key(
    credentials: Mapping[ScramOwner, ScramCredential], cluster_id: str, shared_secret: str | None = None
) -> bytes:
    """The same on all brokers: from a secret that they share, where there is one. Otherwise from the oldest credential:
    whoever it belongs to could find it out, and a new password of that user changes it. Where there is no user nobody
    has to be told from one."""
    if shared_secret:
        return hmac.digest(shared_secret.encode(), b"decoys of " + cluster_id.encode(), "sha512")
    oldest = next(iter(credentials.values()), None)
    return cluster_id.encode() if oldest is None else oldest.keys.server


def iterations_in_use(credentials: Mapping[ScramOwner, ScramCredential], mechanism: int) -> Collection[int]:
    """The same on all brokers, like `decoy_key`."""
    oldest = islice(credentials.items(), LOOKED_AT_MAX)
    return {credential.iterations for (_, number), credential in oldest if number == mechanism}


def _none_in_use() -> Collection[int]:
    return ()


class ScramMechanism:
    """`random_bytes` and `now_ms` are asked at every login. `decoy_key` must be the same on all brokers and known to no
    client: from it comes what somebody unknown is shown."""

    def __init__(
        self,
        mechanism: int,
        *,
        accounts: Accounts,
        random_bytes: Callable[[int], bytes],
        now_ms: Callable[[], int],
        decoy_key: Callable[[], bytes],
        iterations: Callable[[], Collection[int]] = _none_in_use,
    ) -> None:
        self.name = MECHANISM_NAMES[mechanism]
        self.number = mechanism
        self.accounts = accounts
        self.random_bytes = random_bytes
        self.now_ms = now_ms
        self._decoy_key = decoy_key
        self._iterations = iterations

    def begin(self, host: str) -> "ScramExchange":
        return ScramExchange(self)

    def decoy(self, name: str, by_token: bool = False) -> Account:
        """Nobody can prove to have its password, since nobody knows of one. When its iterations change its salt does,
        too: it looks like a new password."""
        key = self._decoy_key()

        def made(what: bytes) -> bytes:
            return hmac.digest(key, b"%s %s" % (what, name.encode()), hash_name(self.number))

        in_use = () if by_token else self._iterations()
        iterations = max(in_use, key=lambda each: made(b"iterations %d" % each), default=ITERATIONS_MIN)
        salt = readable_salt(made(b"salt %d" % iterations))
        credential = ScramCredential(salt, iterations, ScramKeys(made(b"stored"), made(b"server")))
        return Account(credential, Principal(USER, name))


class ScramExchange:
    def __init__(self, mechanism: ScramMechanism) -> None:
        self._mechanism = mechanism
        self._name: str | None = None
        self._next: Callable[[str], Step] | None = self._first

    async def step(self, data: bytes) -> Step:
        step, self._next = self._next, None  # whatever fails, fails for good
        if step is None:
            raise self._refused("a message behind the end")
        if len(data) > MESSAGE_BYTES_MAX:
            raise self._refused(f"a message of {len(data)} bytes")
        try:
            return step(bytes(data).decode())
        except UnicodeDecodeError:
            raise self._refused("a message that is not UTF-8") from None

    def _first(self, message: str) -> Step:
        found = CLIENT_FIRST.fullmatch(message)
        if found is None:
            raise self._refused("a first message that is none of SCRAM")
        if found["binding"].startswith("p"):
            raise self._refused("channel binding, which was not offered")
        if len(found["nonce"]) > CLIENT_NONCE_MAX:
            raise self._refused(f"a nonce of {len(found['nonce'])} bytes")
        name = _unescaped(found["name"])
        if is_too_long(name):
            raise self._refused(f"a name of more than {TEXT_BYTES_MAX} bytes")
        self._name = name
        self._check_authorization(name, found["authorization"])
        by_token = _extensions(found["extensions"]).get(TOKEN_AUTH, "").lower() == "true"
        decoy = self._mechanism.decoy(name, by_token)
        account = self._mechanism.accounts(name, by_token)
        self._is_known = account is not None
        self._account = account or decoy
        self._header = found["header"]
        self._nonce = found["nonce"] + base64.b64encode(self._mechanism.random_bytes(SERVER_NONCE_BYTES)).decode()
        credential = self._account.credential
        answer = f"r={self._nonce},s={base64.b64encode(credential.salt).decode()},i={credential.iterations}"
        self._said = f"{found['bare']},{answer},"
        self._next = self._final
        return Step(answer.encode())

    def _check_authorization(self, name: str, authorization: str | None) -> None:
        if authorization is not None and _unescaped(authorization) != name:
            sentence = "Authentication failed: Client requested an authorization id that is different from username"
            raise LoginRefused(sentence, principal=Principal(USER, name))

    def _final(self, message: str) -> Step:
        found = CLIENT_FINAL.fullmatch(message)
        if found is None:
            raise self._refused("a final message that is none of SCRAM")
        if _bytes_of(found["header"]) != self._header.encode():
            raise self._refused("another header than in the first message")
        if not hmac.compare_digest(found["nonce"].encode(), self._nonce.encode()):
            raise self._refused("a nonce that is not of this exchange")
        signature = self._check_proof(_bytes_of(found["proof"]), (self._said + found["unproved"]).encode())
        account = self._account
        login = Login(account.principal, account.expires_at_ms, account.by_delegation_token)
        return Step(b"v=" + base64.b64encode(signature), login)

    def _check_proof(self, proof: bytes, said: bytes) -> bytes:
        """The server's signature, by the key that belongs to the proof. All live keys are tried in any case."""
        number = self._mechanism.number
        digest, size = hash_name(number), hash_size(number)
        if len(proof) != size:
            raise self._refused(f"a proof of {len(proof)} bytes")
        proved: ScramKeys | None = None
        for keys in self._account.credential.live_keys(self._mechanism.now_ms()):
            signature = int.from_bytes(hmac.digest(keys.stored, said, digest), "big")
            client_key = (int.from_bytes(proof, "big") ^ signature).to_bytes(size, "big")
            if hmac.compare_digest(hashlib.new(digest, client_key).digest(), keys.stored):
                proved = keys
        if proved is None or not self._is_known:
            raise self._refused("wrong password" if self._is_known else "no such user")
        return hmac.digest(proved.server, said, digest)

    def _refused(self, reason: str) -> LoginRefused:
        """One sentence for whatever is wrong, Kafka's."""
        return LoginRefused(
            "Authentication failed during authentication due to invalid credentials with SASL mechanism "
            + self._mechanism.name,
            reason=reason,
            principal=None if self._name is None else Principal(USER, self._name),
        )


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _extensions(text: str) -> dict[str, str]:
    """Those that nobody knows are ignored, as the RFC says."""
    return dict(each.split("=", 1) for each in text.split(",") if each)


def _bytes_of(text: str) -> bytes:
    """Empty when it is not Base64: nothing that is compared with it is empty."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
