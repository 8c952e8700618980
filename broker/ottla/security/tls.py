"""A listener's TLS: its certificate, whom it trusts, and what it negotiates, as one context of OpenSSL."""

import os
import ssl
import time
from dataclasses import dataclass

from ottla.config.listeners import ListenerSettings
from ottla.errors import Refusal
from ottla.security.certificates import BadStore, KeyStore, Leaf, misfit, read_key_store, read_trust_store
from ottla.security.core.cipher_names import BadCiphers, ciphers_of

__all__ = ["Identity", "load_identity", "renew_identity"]

AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
PARTIAL_CHAIN = ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN  # as Java: whatever is trusted ends the chain


@dataclass(frozen=True, slots=True)
class Identity:
    """What a listener shows to new connections. It never changes; a new one takes its place."""

    context: ssl.SSLContext
    leaf: Leaf
    loaded_at_s: float


def renew_identity(settings: ListenerSettings, before: Identity) -> Identity:
    """As `load_identity`, for what takes the place of another one: it is still the same broker's."""
    renewed = load_identity(settings)
    if problem := misfit(
        before.leaf,
        renewed.leaf,
        may_change_subject=settings["ssl.allow.dn.changes"],
        may_drop_names=settings["ssl.allow.san.changes"],
    ):
        raise Refusal(f"{settings.endpoint}: {problem}")
    return renewed


def load_identity(settings: ListenerSettings) -> Identity:
    """Reads files: for threads, or before there are clients. Raises Refusal with a sentence."""
    try:
        store = read_key_store(settings)
        context = _context(settings, store)
    except (BadStore, BadCiphers) as problem:
        raise Refusal(f"{settings.endpoint}: {problem}") from None
    now_s = time.time()
    if unfit := store.leaf.problem(now_s):
        raise Refusal(f"{settings.endpoint}: {unfit}; put a valid one in its place")
    return Identity(context, store.leaf, now_s)


def _context(settings: ListenerSettings, store: KeyStore) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _set_versions(context, settings)
    _load_chain(context, store)
    trusted = read_trust_store(settings)
    context.verify_mode = AUTH[settings.client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        _keep_no_sessions(context)
    context.verify_flags |= PARTIAL_CHAIN
    if trusted:
        context.load_verify_locations(cadata=trusted.decode("ascii"))
    return context


def _keep_no_sessions(context: ssl.SSLContext) -> None:
    """Who resumes a session shows no certificate. Of TLS 1.2 the sessions in OpenSSL's memory stay, which Python cannot
    turn off: `Handshakes.check` looks at those."""
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0


def _set_versions(context: ssl.SSLContext, settings: ListenerSettings) -> None:
    ciphers = ciphers_of(settings["ssl.cipher.suites"])
    allowed = {VERSIONS[name] for name in settings["ssl.enabled.protocols"]}
    if ciphers.of_1_2 or ciphers.any_of_1_3:
        if not ciphers.of_1_2:
            allowed.discard(ssl.TLSVersion.TLSv1_2)
        if not ciphers.any_of_1_3:
            allowed.discard(ssl.TLSVersion.TLSv1_3)
    if not allowed:
        raise BadCiphers(
            "ssl.cipher.suites has none for the versions of ssl.enabled.protocols; name some, or remove it"
        )
    context.minimum_version, context.maximum_version = min(allowed), max(allowed)
    if ciphers.of_1_2:
        try:
            context.set_ciphers(ciphers.of_1_2)
        except ssl.SSLError:
            raise BadCiphers("ssl.cipher.suites: OpenSSL has none of these here; name others, or remove it") from None


def _load_chain(context: ssl.SSLContext, store: KeyStore) -> None:
    """OpenSSL's context wants a file: this one is in memory, and nobody else's."""
    descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, store.key + store.chain)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadStore(f"the private key does not belong to the certificate of {store.leaf.subject}") from None
        raise BadStore(f"OpenSSL does not take the key and certificate: {error.reason}") from None
    finally:
        os.close(descriptor)
