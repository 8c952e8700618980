"""A raw connection that logs in by SCRAM, with a password or a delegation token."""

from typing import Any

from kafka.net.sasl.scram import ScramClient
from kio.schema.alter_user_scram_credentials.v0 import request as alter
from kio.schema.alter_user_scram_credentials.v0.response import AlterUserScramCredentialsResponse
from kio.schema.errors import ErrorCode as Code
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from ottla.metadata.model.credentials import MECHANISM_NAMES, salted_password
from support.frames import Connection

__all__ = ["LoginFailed", "ScramConnection", "set_password"]


class LoginFailed(Exception):
    pass


class ScramConnection(Connection):
    """`last` is the answer to the last message of the login."""

    last: Any

    def log_in(self, name: str, password: str, *, token: bool = False, mechanism: str = "SCRAM-SHA-256") -> None:
        client = ScramClient(name, password, mechanism)
        self.ask(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
        first = client.first_message() + (b",tokenauth=true" if token else b"")
        client.auth_message = first.removeprefix(b"n,,")
        client.process_server_first_message(self._said(first))
        client.process_server_final_message(self._said(client.final_message()))

    def _said(self, message: bytes) -> bytes:
        self.last = self.ask(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse)
        if self.last.error_code is not Code.none:
            raise LoginFailed(self.last.error_message)
        return bytes(self.last.auth_bytes)


def set_password(port: int, user: str, password: str, mechanism: int = 1) -> None:
    """Over a connection that needs no login."""
    assert mechanism in MECHANISM_NAMES
    salt = b"some salt"
    salted = salted_password(mechanism, password, salt=salt, iterations=4096)
    change = alter.ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=4096, salt=salt, salted_password=salted
    )
    with Connection(port) as connection:
        request = alter.AlterUserScramCredentialsRequest(deletions=(), upsertions=(change,))
        answer = connection.ask(request, AlterUserScramCredentialsResponse)
    assert answer.results[0].error_code is Code.none
