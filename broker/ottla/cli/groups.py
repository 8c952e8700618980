"""`ottla groups`: which groups there are, who is in them, and how far behind they are."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from ottla.cli.group_facts import GroupFacts, PartitionFacts, described, listed
from ottla.cli.kafka.options import Bootstrap, Config, connect
from ottla.cli.terminal import make_console

__all__ = ["HELP", "commands"]

HELP = """\
Consumer groups: list them, and see how far behind they are.

\b
examples:
  ottla groups list
  ottla groups describe my-group --bootstrap 127.0.0.1:9092
  ottla groups list --command-config data/librdkafka.conf
"""

commands = typer.Typer(no_args_is_help=True)
STYLES = {"Stable": "green", "Empty": "", "Dead": "red"}


@commands.command("list", help="All groups, with their state and coordinator.")
def list_groups(bootstrap: Bootstrap = None, config: Config = None) -> None:
    client = connect(bootstrap, config)
    table = _table("group", "type", "state", "protocol", "coordinator")
    for group in listed(client):
        state = Text(group.state, style=STYLES.get(group.state, "yellow"))
        table.add_row(Text(group.group_id), group.type, state, group.protocol, str(group.coordinator))
    client.close()
    make_console().print(table if table.row_count else "no groups")


@commands.command("describe", help="Members, offsets and lag of groups.")
def describe(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP…")],
    bootstrap: Bootstrap = None,
    config: Config = None,
) -> None:
    client = connect(bootstrap, config)
    console = make_console()
    for group_id in groups:
        facts = described(client, group_id)
        console.print(_title(facts), soft_wrap=True)
        if facts.partitions:
            console.print(_partitions(facts.partitions))
    client.close()


def _title(facts: GroupFacts) -> Text:
    text = Text(facts.group_id, style="bold")
    text.append(f": {facts.state}, {facts.type}", style="not bold")
    if facts.assignor:
        text.append(f", {facts.assignor}", style="not bold")
    members = f"{facts.members} member{'' if facts.members == 1 else 's'}"
    unknown = f" and {facts.uncommitted} without a committed offset" if facts.uncommitted else ""
    return text.append(f", {members}, coordinator {facts.coordinator}, lag {facts.lag}{unknown}", style="not bold")


def _partitions(partitions: list[PartitionFacts]) -> Table:
    table = _table("topic", "partition", "committed", "end", "lag", "member")
    for one in partitions:
        numbers = [_number(one.committed), _number(one.end), _number(one.lag)]
        table.add_row(Text(one.topic), str(one.partition), *numbers, Text(one.owner))
    return table


def _number(value: int) -> str:
    return "-" if value < 0 else str(value)


def _table(*headings: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        right = heading in ("partition", "committed", "end", "lag", "coordinator")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    return table
