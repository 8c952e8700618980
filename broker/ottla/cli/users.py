"""`ottla users`: who can log in with a password (SCRAM). Passwords come from the terminal or a file."""

import re
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from ottla.cli.control_access import Ca, Cert, Key
from ottla.cli.fleet_addresses import control_client, explained
from ottla.cli.fleet_plan import kept_control_addresses
from ottla.cli.kafka.admin import AdminClient
from ottla.cli.kafka.options import Bootstrap, Config
from ottla.cli.passwords import password
from ottla.cli.terminal import make_console
from ottla.errors import Code, Refusal
from ottla.metadata.model.credentials import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_NAMES,
    SALT_SEED_BYTES,
    readable_salt,
    salted_password,
    scram_keys,
)

if TYPE_CHECKING:
    from ottla.pb import control_pb2 as pb

__all__ = ["HELP", "commands"]

HELP = """\
Users who log in with a password (SCRAM): list, add, remove; give one a new password while the old one stays good.

\b
examples:
  ottla users list --bootstrap 127.0.0.1:9092
  ottla users add alice --command-config librdkafka.conf
  ottla users rotate alice --keep-old-for 10m --data-dir data
"""

ROTATE = """\
Give a user a new password. The old one stays good for a while, so that clients can be changed one after the other.

It goes through the fleet's control service, so --nodes are gRPC addresses. `ottla users add` and Kafka's own tools
replace a password at once.
"""

UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
STRONGEST = "SCRAM-SHA-512"
commands = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME")]
PasswordFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Its first line is the password; else the terminal is asked.")
]


@commands.command("list", help="All users, with their mechanisms and iterations.")
def list_users(bootstrap: Bootstrap = None, config: Config = None) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("user", "mechanism", "iterations"):
        table.add_column(heading, justify="right" if heading == "iterations" else "left", no_wrap=True)
    for user, mechanism, iterations in AdminClient(bootstrap, config).scram_users():
        table.add_row(Text(user), mechanism, str(iterations))
    make_console().print(table if table.row_count else "no users")


@commands.command("add", help="Add a user, or replace the password of one at once.")
def add(
    name: Name,
    mechanisms: Annotated[
        list[str] | None, typer.Option("--mechanism", help=f"{STRONGEST} if left out; may be given twice.")
    ] = None,
    iterations: Annotated[int, typer.Option(min=ITERATIONS_MIN, max=ITERATIONS_MAX)] = 8192,
    password_file: PasswordFile = None,
    bootstrap: Bootstrap = None,
    config: Config = None,
) -> None:
    if not name:
        raise Refusal("a user's name is not empty")
    numbers = [_number(each) for each in mechanisms or [STRONGEST]]
    client, secret = AdminClient(bootstrap, config), password(password_file, f"password for {name}: ")
    for number in numbers:  # one by one: Kafka changes a user once in a request
        salt = readable_salt(secrets.token_bytes(SALT_SEED_BYTES))
        client.upsert_scram(name, number, secret, iterations=iterations, salt=salt)
        print(f"{name} can log in with {MECHANISM_NAMES[number]}")


@commands.command("remove", help="Remove a user, or one mechanism of theirs. Connections that are logged in stay.")
def remove(
    name: Name,
    mechanisms: Annotated[list[str] | None, typer.Option("--mechanism", help="All of theirs if left out.")] = None,
    bootstrap: Bootstrap = None,
    config: Config = None,
) -> None:
    client = AdminClient(bootstrap, config)
    numbers = [_number(each) for each in mechanisms or ()]
    numbers = numbers or [_number(mechanism) for user, mechanism, _ in client.scram_users() if user == name]
    if not numbers:
        raise Refusal(f"there is no user {name}")
    for number in numbers:
        client.delete_scram(name, number)
        print(f"{name} cannot log in with {MECHANISM_NAMES[number]} any more")


@commands.command("rotate", help=ROTATE)
def rotate(
    name: Name,
    keep_old_for: Annotated[str, typer.Option(metavar="TIME", help="Such as 90s, 10m, 2h or 1d.")] = "10m",
    password_file: PasswordFile = None,
    nodes: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,…", help="gRPC addresses; else those of the local fleet.")
    ] = None,
    data_dir: Annotated[str, typer.Option(metavar="DIR", help="Where the local fleet lives.")] = "data",
    cert: Cert = None,
    key: Key = None,
    ca: Ca = None,
) -> None:
    keep_ms = _milliseconds(keep_old_for)
    client = control_client(nodes, data_dir, cert, key, ca)
    with explained(nodes, data_dir, by_tls=client.by_tls):
        present = client.describe_scram(name).credentials
        if not present:
            raise Refusal(f"there is no user {name}; `ottla users add {name}` adds one")
        secret = password(password_file, f"new password for {name}: ")
        outcome = client.rotate_scram(_rotation(name, present, secret, keep_ms)).outcome
    if outcome.code:
        raise Refusal(f"{Code(outcome.code).name}: {outcome.message}")
    client.close()
    where = f"in the fleet of {nodes or f'{data_dir} ({kept_control_addresses(data_dir)[0]})'}"
    print(f"{name} has a new password {where}; the old one is good for {keep_old_for}")


def _rotation(name: str, present: "Iterable[pb.ScramParameters]", secret: str, keep_ms: int) -> "pb.RotateScramRequest":
    from ottla.pb import control_pb2 as pb

    request = pb.RotateScramRequest(user=name, keep_old_ms=keep_ms)
    for each in present:
        salted = salted_password(each.mechanism, secret, salt=each.salt, iterations=each.iterations)
        keys = scram_keys(each.mechanism, salted)
        request.credentials.add(
            mechanism=each.mechanism,
            salt=each.salt,
            iterations=each.iterations,
            stored_key=keys.stored,
            server_key=keys.server,
        )
    return request


def _number(mechanism: str) -> int:
    for number, name in MECHANISM_NAMES.items():
        if name == mechanism.upper():
            return number
    raise Refusal(f"--mechanism {mechanism}: there are {' and '.join(MECHANISM_NAMES.values())}")


def _milliseconds(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if found is None:
        raise Refusal(f"--keep-old-for {text}: a number and s, m, h or d is expected, such as 10m")
    return int(found[1]) * UNITS_MS[found[2]]
