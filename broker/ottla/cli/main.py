"""The ottla command. `ottla serve` starts without typer and rich, which would cost it a tenth of a second."""

import sys
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer

__all__ = ["app"]

HELP = """\
A Kafka-compatible broker.

\b
Start one here and now, on 127.0.0.1:9092:
  ottla serve
With the file of a Kafka broker and one setting changed:
  ottla serve --config server.properties --set log.retention.hours=24
A fleet of three on this machine, in three racks:
  ottla fleet up -n 3 --racks a,b,c
The same, with sample events and a Spark pipeline over them:
  ottla up
Groups of consumers, and how far behind they are:
  ottla groups list
  ottla groups describe my-group
Users who log in with a password:
  ottla users add alice
Who may do what, and why not:
  ottla acls test alice read topic:orders
Find a setting and read what it does:
  ottla config list retention
  ottla config show retention.ms --topic
"""


def app(words: list[str] | None = None) -> int:
    """Run one command; the process's exit status."""
    words = sys.argv[1:] if words is None else words
    from ottla.errors import Refusal

    try:
        if words[:1] == ["serve"]:
            from ottla.cli import serve

            return serve.main(words[1:])
        if words == ["--version"]:
            return _print_version()
        _commands()(words, prog_name="ottla")  # ends with SystemExit
        return 0
    except Refusal as refusal:
        print(f"ottla {' '.join(words[:1])}: {refusal}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # while modules are imported; what runs longer handles signals by itself
        return 130


def _print_version() -> int:
    from ottla import __version__

    print(f"ottla {__version__}")
    return 0


def _commands() -> "typer.Typer":
    import typer
    from rich.markup import escape

    from ottla.cli import acls, config, fleet, format, groups, pipeline, pki, serve, up, users

    commands = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

    @commands.callback()
    def options(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
        """`app` has answered --version before: it is here for --help, as is serve."""

    commands.command("serve", help=serve.SUMMARY)(lambda: None)
    commands.command("format", help=escape(format.HELP))(format.format_directories)
    commands.command("random-uuid", help="Print a new cluster id.")(format.random_uuid)
    commands.command("up", help=up.HELP)(up.up)
    commands.add_typer(fleet.commands, name="fleet", help=fleet.HELP)
    commands.add_typer(pipeline.commands, name="pipeline", help=pipeline.HELP)
    commands.add_typer(groups.commands, name="groups", help=groups.HELP)
    commands.add_typer(users.commands, name="users", help=users.HELP)
    commands.add_typer(acls.commands, name="acls", help=acls.HELP)
    commands.add_typer(pki.commands, name="pki", help=pki.HELP)
    commands.add_typer(config.commands, name="config", help=config.HELP)
    return commands
