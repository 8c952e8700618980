"""Every call to a node's gRPC server passes here first: who calls, by its certificate, and whether it may.

A refused call ends with PERMISSION_DENIED, or UNAUTHENTICATED when nobody knows whose it is, and is written down; so is
one that changes the cluster. A certificate that has expired begins no more calls, on whichever connection; streams that
it has begun go on.
"""

import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

import grpc
import grpc.aio
from cryptography import x509

from ottla.rpc.changes import CHANGES
from ottla.rpc.roles import CLUSTER_KEY, Caller, Denied, refusal
from ottla.security.core.audit import AuditEvent, AuditTrail, NoTrail, Verdict, resource_lines
from ottla.security.core.identities import identity_among
from ottla.security.core.principals import ANONYMOUS, Principal

__all__ = ["Context", "Gate", "caller_of", "require_node"]

Context = grpc.aio.ServicerContext[Any, Any]
if TYPE_CHECKING:
    Handler = grpc.RpcMethodHandler[Any, Any]

LISTENER = "gRPC"
PLAIN_TRANSPORT = b"insecure"
REASON_CHARACTERS_MAX = 300
CERTIFICATES_KEPT_MAX = 1_000


class Gate:
    """`host_of` turns gRPC's name of a peer into its address. Refusals and changes are written into `trail`."""

    def __init__(
        self, *, cluster_id: str | None, host_of: Callable[[str], str], now_s: Callable[[], float] = time.time
    ) -> None:
        self._cluster_id = cluster_id
        self._now_s = now_s
        self.trail: AuditTrail = NoTrail()
        self._host_of = host_of

    def guarded(self, service: str, methods: "dict[str, Handler]") -> "dict[str, Handler]":
        return {name: self._guard(f"/{service}/{name}", one) for name, one in methods.items()}

    def _guard(self, method: str, handler: "Handler") -> "Handler":
        kind = ("stream" if handler.request_streaming else "unary", "stream" if handler.response_streaming else "unary")
        behaviour = getattr(handler, "_".join(kind))
        guard = self._guard_stream if inspect.isasyncgenfunction(behaviour) else self._guard_call
        make = getattr(grpc, f"{kind[0]}_{kind[1]}_rpc_method_handler")
        made: Handler = make(guard(method, behaviour), handler.request_deserializer, handler.response_serializer)
        return made

    def _guard_call(self, method: str, behaviour: Callable[..., Any]) -> Callable[..., Any]:
        async def call(request: Any, context: Context) -> Any:
            try:
                self._admit(method, context)
                if (named := CHANGES.get(method)) is not None:
                    for line in resource_lines(named(request)):
                        self._record(method, context, "allowed", resource=line)
                return await behaviour(request, context)
            except Denied as denied:
                await self._refuse(method, context, denied)

        return call

    def _guard_stream(self, method: str, behaviour: Callable[..., Any]) -> Callable[..., Any]:
        async def stream(request: Any, context: Context) -> AsyncIterator[Any]:
            try:
                self._admit(method, context)
                async with contextlib.aclosing(behaviour(request, context)) as answers:
                    async for answer in answers:
                        yield answer
            except Denied as denied:
                await self._refuse(method, context, denied)

        return stream

    def _admit(self, method: str, context: Context) -> None:
        denied = refusal(method, caller_of(context), cluster_id=self._cluster_id, now_s=self._now_s())
        if denied is not None:
            raise denied

    async def _refuse(self, method: str, context: Context, denied: Denied) -> NoReturn:
        reason = str(denied)[:REASON_CHARACTERS_MAX]
        self._record(method, context, "denied", reason=reason)
        code = grpc.StatusCode.UNAUTHENTICATED if denied.unknown else grpc.StatusCode.PERMISSION_DENIED
        await context.abort(code, reason)
        raise AssertionError("abort does not return")

    def _record(self, method: str, context: Context, verdict: Verdict, *, resource: str = "", reason: str = "") -> None:
        caller = caller_of(context)
        who = ANONYMOUS if caller.identity is None else Principal(caller.identity.role, caller.identity.name)
        self.trail.record(
            AuditEvent(
                principal=who,
                host=_host(self._host_of(context.peer())),
                listener=LISTENER,
                action=method,
                resource=resource,
                verdict=verdict,
                reason=reason,
            )
        )


def caller_of(context: Context) -> Caller:
    facts = context.auth_context()
    secured = PLAIN_TRANSPORT not in facts.get("transport_security_type", ())
    until_s = min(map(_ends_at_s, facts.get("x509_pem_cert", ())), default=0.0)
    return Caller(secured, identity_among(_texts(facts.get("peer_uri", ()))), _claimed_cluster(context), until_s)


def require_node(context: Context, node_id: int) -> None:
    """Whoever calls as a node must have that node's certificate. Raises Denied. Without TLS there is nothing to see."""
    caller = caller_of(context)
    if caller.secured and (caller.identity is None or caller.identity.node_id != node_id):
        raise Denied(f"the certificate of {caller.identity} does not speak for node {node_id}")


@lru_cache(CERTIFICATES_KEPT_MAX)
def _ends_at_s(pem: bytes) -> float:
    """The same few callers come again and again, and reading a certificate costs more than a small call's handler."""
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()


def _claimed_cluster(context: Context) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == CLUSTER_KEY:
            return value if isinstance(value, str) else value.decode("ascii", "replace")
    return None


def _texts(values: Iterable[bytes]) -> Iterator[str]:
    return (value.decode("utf-8", "replace") for value in values)


def _host(peer: str) -> str:
    """Of gRPC's `ipv4:192.0.2.1:4711` and `ipv6:%5B::1%5D:4711`."""
    family, _, place = peer.partition(":")
    return unquote(place).rpartition(":")[0].strip("[]") if family in ("ipv4", "ipv6") else peer
