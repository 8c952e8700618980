"""The certificate with which somebody at a terminal calls the Control service, and what a port that refuses wants."""

import datetime
import os
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.port_probes import takes_http2, takes_tls
from ottla.errors import Refusal

if TYPE_CHECKING:
    from ottla.rpc.credentials import Credentials

__all__ = ["Ca", "Cert", "Key", "access", "credentials_in", "explain_access"]

ENVIRONMENT = {"--cert": "OTTLA_CERT", "--key": "OTTLA_KEY", "--ca": "OTTLA_CA"}

Cert = Annotated[
    str | None,
    typer.Option(
        "--cert",
        metavar="FILE",
        envvar=ENVIRONMENT["--cert"],
        help="Your certificate, for a fleet that wants one; made by `ottla pki issue`.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="FILE", envvar=ENVIRONMENT["--key"], help="Its key, where it is not in the same file."
    ),
]
Ca = Annotated[
    str | None,
    typer.Option("--ca", metavar="FILE", envvar=ENVIRONMENT["--ca"], help="The CA that issues to the fleet's nodes."),
]


def access(cert: str | None, key: str | None, ca: str | None) -> "Credentials | None":
    """None when nothing was given: plaintext."""
    if not (cert or key or ca):
        return None
    if not cert or not ca:
        missing = "--cert" if not cert else "--ca"
        raise Refusal(f"{missing} (or {ENVIRONMENT[missing]}) is missing: TLS needs a certificate and a CA")
    return credentials_in(cert, ca, key)


def credentials_in(keystore: str, ca: str, key: str | None = None) -> "Credentials":
    from ottla.rpc.credentials import CredentialFiles, read_credentials

    return read_credentials(CredentialFiles(keystore, ca, key), datetime.datetime.now(datetime.UTC))


def explain_access(address: str, *, by_tls: bool) -> None:
    """Refusal when the port wants TLS and was called without, or the other way round, or not with this certificate."""
    if not by_tls and takes_tls(address):
        options = ", ".join(f"{option} (or {variable})" for option, variable in ENVIRONMENT.items())
        raise Refusal(f"{address} takes TLS only; give {options}")
    if by_tls and takes_http2(address):
        given = [variable for variable in ENVIRONMENT.values() if variable in os.environ]
        hint = f" and unset {', '.join(given)}" if given else ""
        raise Refusal(f"{address} takes plaintext only; leave --cert, --key and --ca out{hint}")
    if by_tls and takes_tls(address):
        raise Refusal(
            f"{address} and this certificate do not trust each other: is --ca the CA of its nodes, and has a CA that "
            "they trust issued --cert?"
        )
