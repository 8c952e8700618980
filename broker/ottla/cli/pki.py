"""`ottla pki`: a CA for a fleet and certificates by it, in files. Talks to nobody."""

import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ottla.cli.terminal import make_console

if TYPE_CHECKING:
    from ottla.security.pki import Described

__all__ = ["HELP", "commands"]

HELP = """\
Make a CA for a fleet, and certificates for its nodes, its operator and its people.

\b
examples:
  ottla pki init pki --cluster-id MkU3OEVBNTcwNTJENDM2Qg
  ottla pki issue pki broker 1 --host broker-1.example.org --host 192.0.2.1
  ottla pki issue pki person alice --days 30
  ottla pki show pki/broker-1.crt
"""

ISSUE = """\
Issue a certificate by the CA in DIR: for a broker or a controller (NAME is its node.id), an operator or a person.

Writes NAME.crt, NAME.key and NAME.pem, which has both: what ottla.grpc.ssl.keystore.location and, with
ssl.keystore.type=PEM, ssl.keystore.location take. A node that is broker and controller needs that of a broker.
"""

DAYS = 365
EXPIRES_SOON_DAYS = 30
commands = typer.Typer(no_args_is_help=True)
Folder = Annotated[str, typer.Argument(metavar="DIR", help="Where the CA's files are.")]
Key = Annotated[str, typer.Option("--key", metavar="ec|rsa", help="P-256, or RSA of 3072 bits.")]


@commands.command("init", help="Make the CA of a cluster: DIR/ca.crt, which everybody may see, and DIR/ca.key.")
def init(
    folder: Folder,
    cluster_id: Annotated[
        str, typer.Option(metavar="ID", help="As in cluster.id; `ottla random-uuid` makes one for a new fleet.")
    ],
    key: Key = "ec",
) -> None:
    from ottla.security.pki import create_authority

    path = create_authority(folder.rstrip("/") or "/", cluster_id=cluster_id, key=key, now=_now())
    print(f"{path} is the CA of cluster {cluster_id}; keep ca.key beside it where nobody else reads it")


@commands.command("issue", help=ISSUE)
def issue(
    folder: Folder,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="broker, controller, operator or person.")],
    name: Annotated[str, typer.Argument(metavar="NAME")],
    host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="DNS name or address at which clients reach a node.")
    ] = None,
    days: Annotated[int, typer.Option(metavar="N", min=1, help="How long it holds.")] = DAYS,
    key: Key = "ec",
) -> None:
    from ottla.security import pki

    made = pki.issue(folder.rstrip("/") or "/", role=role, name=name, hosts=host or (), days=days, key=key, now=_now())
    print("\n".join(made))


@commands.command("show", help="Show the certificates in files.")
def show(files: Annotated[list[str], typer.Argument(metavar="FILE…")]) -> None:
    from ottla.security.pki import describe

    console = make_console()
    for number, one in enumerate(each for path in files for each in describe(path)):
        if number:
            console.print()
        console.print(_block(one), soft_wrap=True)


def _block(one: "Described") -> Text:
    """One line for each thing that it says."""
    identity = one.identity
    lines = {
        "subject": Text(one.subject),
        "role": Text(str(identity) if identity is not None else "none"),
        "cluster": Text(identity.cluster_id if identity is not None else ""),
        "hosts": Text(", ".join(one.names)),
        "serial": Text(f"{one.serial:X}"),
        "expires": _expiry(one.not_after),
        "SHA-256": Text(one.fingerprint),
    }
    told = [Text.assemble(f"  {name:<8} ", value) for name, value in lines.items() if value.plain]
    return Text("\n").join([Text(one.path, style="bold"), *told])


def _expiry(not_after: datetime.datetime) -> Text:
    left = not_after - _now()
    style = "red" if left < datetime.timedelta() else "yellow" if left.days < EXPIRES_SOON_DAYS else ""
    return Text(f"{not_after:%Y-%m-%d %H:%M}" + (" (over)" if left < datetime.timedelta() else ""), style=style)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
