"""What a command says of a port that is there and does not let it in."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ottla.cli.kafka.connection import Connection
from ottla.cli.kafka.settings import ClientSettings
from ottla.errors import Refusal
from support.certificates import Authority

API_VERSIONS = (18, 0)
SECONDS = 5.0


@contextlib.contextmanager
def port_that_hangs_up(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """After TLS, if there is any, and a first message. Stops with its listening socket."""

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                client.settimeout(SECONDS)
                with context.wrap_socket(client, server_side=True) if context else client as inner:
                    inner.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def said(port: int, settings: ClientSettings) -> str:
    with pytest.raises(Refusal) as refused:
        Connection(("127.0.0.1", port), settings, answer_s_max=SECONDS).ask(API_VERSIONS, {})
    return str(refused.value).removeprefix(f"127.0.0.1:{port}: ")


def test_a_port_with_tls(tmp_path: Path) -> None:
    Authority.in_folder(tmp_path)
    Authority("Wrong CA").write(tmp_path, "wrong")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "broker.pem")
    wrong, gone = f"{tmp_path}/wrong.pem", f"{tmp_path}/gone.pem"
    with port_that_hangs_up(context) as port:
        assert said(port, ClientSettings()).startswith("this port wants TLS: security.protocol=SASL_SSL (or SSL)")
        assert said(port, ClientSettings(protocol="SSL", ca=wrong)).startswith(
            f"the server's certificate is not by the CA in {wrong}"
        )
        assert said(port, ClientSettings("f", protocol="SSL", ca=gone)) == (
            f"f: the CA in {gone} cannot be read: no such file or directory"
        )
        assert "it may want a login: security.protocol=SASL_SSL" in said(
            port, ClientSettings(protocol="SSL", ca=f"{tmp_path}/ca.pem")
        )


def test_a_port_without_tls() -> None:
    with port_that_hangs_up() as port:
        assert "if it has none: security.protocol=PLAINTEXT" in said(port, ClientSettings(protocol="SSL"))
        assert "it may want a login: security.protocol=SASL_PLAINTEXT" in said(port, ClientSettings())
