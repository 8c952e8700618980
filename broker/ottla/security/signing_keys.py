"""The keys of an identity provider: fetched from its address, kept, and fetched again.

They are fetched again when they are old, and when a token names one that is not there: the login waits for that, since
a provider may begin to use a key as soon as it shows it. Whatever clients send, the provider is asked at most once in
PAUSE_S; while it does not answer, ever more rarely, and the keys that were known stay good.
"""

import asyncio
import http.client
import logging
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from ottla.ports import Clock
from ottla.system import Threads

__all__ = ["ASYMMETRIC", "BadKeys", "SigningKey", "SigningKeys", "fetch_keys", "parse_keys"]

log = logging.getLogger("ottla.security")

PAUSE_S = 2.0
FETCH_S_MAX = 10.0
DOCUMENT_BYTES_MAX = 1 << 20
KEYS_MAX = 200
RSA_BITS_MIN = 2048
# By the type of a key and its curve. Nothing that is checked with a shared secret, and not `none`.
ALGORITHMS: Mapping[tuple[str, str | None], frozenset[str]] = {
    ("RSA", None): frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    ("EC", "P-256"): frozenset({"ES256"}),
    ("EC", "P-384"): frozenset({"ES384"}),
    ("EC", "P-521"): frozenset({"ES512"}),
    ("OKP", "Ed25519"): frozenset({"EdDSA"}),
}
ASYMMETRIC = frozenset().union(*ALGORITHMS.values())


class BadKeys(Exception):
    """What was fetched are no keys; the text says why."""


class SigningKey(NamedTuple):
    key_id: str | None
    algorithms: frozenset[str]
    key: Any
    """A public key of `cryptography`."""


def parse_keys(document: bytes) -> list[SigningKey]:
    """Those that can sign tokens; others are for other uses, and left out."""
    try:
        listed = msgspec.json.decode(document, type=dict[str, Any])["keys"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
        raise BadKeys("it is no JSON object with `keys`") from None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise BadKeys(f"`keys` is no list of at most {KEYS_MAX}")
    keys = [key for each in listed if isinstance(each, dict) and (key := _key(each)) is not None]
    if not keys:
        raise BadKeys("there is no key in it that signs tokens (RSA from 2048 bits, EC or Ed25519)")
    return keys


def _key(fields: dict[str, Any]) -> SigningKey | None:
    kind, curve = fields.get("kty"), fields.get("crv")
    algorithms = ALGORITHMS.get((str(kind), None if kind == "RSA" else str(curve)), frozenset())
    if (named := fields.get("alg")) is not None:
        algorithms = algorithms & {named} if isinstance(named, str) else frozenset()
    if not algorithms or fields.get("use", "sig") != "sig" or "d" in fields:
        return None
    try:
        key = jwt.PyJWK(fields, algorithm=min(algorithms)).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if isinstance(key, RSAPublicKey) and key.key_size < RSA_BITS_MIN:
        return None
    key_id = fields.get("kid")
    return SigningKey(key_id if isinstance(key_id, str) else None, algorithms, key)


def fetch_keys(url: str) -> bytes:
    """Blocks, for FETCH_S_MAX seconds at most. No redirects: what is trusted is this address. Raises OSError, or
    HTTPException."""
    address = urlsplit(url)
    if address.scheme == "file":
        with open(unquote(address.path), "rb") as file:
            return _bounded(file.read)
    deadline = time.monotonic() + FETCH_S_MAX
    connection = _connection(address.scheme, address.hostname or "", address.port)
    try:
        target = (address.path or "/") + (f"?{address.query}" if address.query else "")
        connection.request("GET", target, headers={"Accept": "application/json, application/jwk-set+json"})
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"it answers with status {response.status}")

        def read(size: int) -> bytes:
            if time.monotonic() > deadline:
                raise TimeoutError(f"it took more than {FETCH_S_MAX:.0f} s")
            return response.read1(size)

        return _bounded(read)
    finally:
        connection.close()


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=FETCH_S_MAX, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=FETCH_S_MAX)


def _bounded(read: Callable[[int], bytes]) -> bytes:
    data = bytearray()
    while part := read(1 << 16):
        data += part
        if len(data) > DOCUMENT_BYTES_MAX:
            raise OSError(f"it has more than {DOCUMENT_BYTES_MAX} bytes")
    return bytes(data)


class SigningKeys:
    """`backoff_ms` and `backoff_ms_max`: pauses after attempts that failed."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        threads: Threads,
        refresh_ms: int,
        backoff_ms: int,
        backoff_ms_max: int,
        fetch: Callable[[str], bytes] = fetch_keys,
    ) -> None:
        self._url = url
        self._clock = clock
        self._threads = threads
        self._refresh_s = refresh_ms / 1000
        self._backoff_s, self._backoff_s_max = backoff_ms / 1000, backoff_ms_max / 1000
        self._fetch = fetch
        self._keys: Sequence[SigningKey] = ()
        self._fetched_at = 0.0
        self._not_before = 0.0
        self._failures = 0
        self._fetching: asyncio.Task[None] | None = None

    async def for_token(self, key_id: str | None, algorithm: str) -> Sequence[SigningKey]:
        """Those that may have signed it. Waits for the provider if there is none yet."""
        found = self._matching(key_id, algorithm)
        if not found:
            await asyncio.shield(self._begin_fetching())
            return self._matching(key_id, algorithm)
        if self._clock.monotonic() - self._fetched_at > self._refresh_s:
            self._begin_fetching()
        return found

    def _matching(self, key_id: str | None, algorithm: str) -> list[SigningKey]:
        able = (key for key in self._keys if algorithm in key.algorithms)
        return [key for key in able if key_id is None or key.key_id in (None, key_id)]

    def _begin_fetching(self) -> "asyncio.Task[None]":
        """One at a time, whoever asks."""
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._fetch_once(), name="signing-keys")
        return self._fetching

    async def _fetch_once(self) -> None:
        await asyncio.sleep(max(self._not_before - self._clock.monotonic(), 0))
        try:
            self._keys = await self._threads.run(_fetched, self._fetch, self._url)
        except (OSError, http.client.HTTPException, BadKeys) as error:
            pause_s = min(self._backoff_s * 2**self._failures, self._backoff_s_max)
            self._failures = min(self._failures + 1, 30)
            log.warning("the keys of %s cannot be had, those known before stay good: %s", self._url, error)
        else:
            self._fetched_at, self._failures, pause_s = self._clock.monotonic(), 0, PAUSE_S
        self._not_before = self._clock.monotonic() + pause_s


def _fetched(fetch: Callable[[str], bytes], url: str) -> list[SigningKey]:
    """In a thread, all of it."""
    return parse_keys(fetch(url))
