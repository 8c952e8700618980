"""A gRPC server; each loop of a node has one.

gRPC's defaults bite, so its options are spelled out here and in `channels`.
"""

from typing import Any

import grpc
import grpc.aio

from ottla.errors import Refusal
from ottla.rpc.front import Front
from ottla.rpc.gate import Gate
from ottla.rpc.securing import OPEN, PLAINTEXT, RpcSecurity
from ottla.security.core.audit import AuditTrail

__all__ = ["ANSWER_BYTES_MAX", "ASKED_BYTES_MAX", "RpcServer"]

# One message to a server: anybody may send it, and it is in memory before it is known who did. Commands, entries of the
# metadata log (RaftConfig.entry_bytes_max) and what followers ask for all fit; snapshots come in parts.
ASKED_BYTES_MAX = 16 * 1024 * 1024
# One message from a server, to a node that asked for it: a batch as large as socket.request.max.bytes lets in must fit.
ANSWER_BYTES_MAX = 128 * 1024 * 1024
STOP_SECONDS_MAX = 0.2  # streams between nodes have no end of their own
OPTIONS = (
    ("grpc.so_reuseport", 0),  # otherwise a second process binds the same port without a word
    ("grpc.max_receive_message_length", ASKED_BYTES_MAX),
    ("grpc.max_send_message_length", ANSWER_BYTES_MAX),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)


class RpcServer:
    """Port 0 lets the system choose; `port` is the one that was bound. `setting` names it where it is in use.

    `cluster_id` is what calls must not contradict, where it is known when the server is made.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        setting: str = "ottla.grpc.port",
        security: RpcSecurity = OPEN,
        cluster_id: str | None = None,
    ) -> None:
        self._server = grpc.aio.server(options=OPTIONS)
        self._security = security
        self._front: Front | None = None
        try:
            self.port = self._listen(host, port)
        except RuntimeError as error:
            raise Refusal(f"cannot listen for gRPC on {host}:{port}: {error}") from error
        if self.port == 0:
            raise Refusal(f"cannot listen for gRPC on {host}:{port}: the port is in use; set {setting}")
        if security.credentials is not None:
            cluster_id = security.credentials.current.identity.cluster_id
        host_of = self._front.host_of if self._front is not None else str
        self._gate = Gate(cluster_id=cluster_id, host_of=host_of)

    def _listen(self, host: str, port: int) -> int:
        address, credentials = f"{host}:{port}", self._security.credentials
        if credentials is None:
            return self._server.add_insecure_port(address)
        if PLAINTEXT not in self._security.accepts:
            return self._server.add_secure_port(address, credentials.server_credentials())
        front = self._front = Front(host, port)
        self._server.add_insecure_port(front.plain_address)
        self._server.add_secure_port(front.tls_address, credentials.server_credentials())
        return front.port

    def audit_to(self, trail: AuditTrail) -> None:
        """Calls that are refused are written there from now on."""
        self._gate.trail = trail

    def add(self, service: str, methods: "dict[str, grpc.RpcMethodHandler[Any, Any]]") -> None:
        """`service` is the full name, such as ottla.pb.Quorum. After `start` too: earlier calls failed."""
        guarded = self._gate.guarded(service, methods)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, guarded),))

    async def start(self) -> None:
        await self._server.start()
        if self._front is not None:
            await self._front.start()
        if self._security.credentials is not None:
            self._security.credentials.watch()

    async def stop(self) -> None:
        if self._security.credentials is not None:
            await self._security.credentials.close()
        await self._server.stop(STOP_SECONDS_MAX)
        if self._front is not None:
            await self._front.stop()
