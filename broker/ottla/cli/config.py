"""`ottla config`: the settings, what they do and allow."""

from difflib import get_close_matches
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ottla.config import BROKER, TOPIC, Setting
from ottla.config.people import allowed, default_for_people
from ottla.errors import Refusal

__all__ = ["HELP", "commands"]

HELP = """\
Find settings: what they do, their defaults, what is allowed.

\b
examples:
  ottla config list                      what a broker acts on
  ottla config list retention --topic    a topic's settings about retention
  ottla config show log.retention.hours
"""

commands = typer.Typer(no_args_is_help=True)
OfTopics = Annotated[bool, typer.Option("--topic", help="Settings of topics instead of brokers.")]


@commands.command("list", help="List settings whose name or text has all the words.")
def list_settings(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORDS", help="Such as: retention bytes")] = None,
    topic: OfTopics = False,
    everything: Annotated[bool, typer.Option("--all", help="Also those without effect in Ottla.")] = False,
) -> None:
    found = [setting for setting in _table(topic).values() if _matches(setting, words or [])]
    if not found:
        raise Refusal(_nothing_found(words or [], topic=topic))
    shown = [setting for setting in found if everything or setting.effect != "none"]
    console = Console(markup=False, highlight=False)
    for setting in shown:
        idle = " · without effect" if setting.effect == "none" else ""
        console.print(
            Text(setting.name, style="bold").append(f" = {default_for_people(setting)}{idle}", style="not bold")
        )
        console.print(Padding(setting.doc, (0, 0, 0, 4)))
    if len(found) > len(shown):
        print(f"{len(found) - len(shown)} more without effect in Ottla: --all")


@commands.command("show", help="Everything about one setting.")
def show(name: Annotated[str, typer.Argument(metavar="NAME")], topic: OfTopics = False) -> None:
    setting = _table(topic).get(name)
    if setting is None:
        raise Refusal(_unknown(name, topic=topic))
    table = Table(box=None, show_header=False, pad_edge=False)
    for label, text in _facts(setting):
        if text:
            table.add_row(Text(label, style="bold"), Text(text))
    Console().print(table)


def _table(topic: bool) -> dict[str, Setting]:
    return TOPIC if topic else BROKER


def _matches(setting: Setting, words: list[str]) -> bool:
    text = f"{setting.name} {setting.doc}".lower()
    return all(word.lower() in text for word in words)


def _facts(setting: Setting) -> list[tuple[str, str]]:
    return [
        ("setting", setting.name),
        ("what it does", setting.doc),
        ("default", default_for_people(setting)),
        ("allowed", allowed(setting)),
        ("type", setting.type.name.lower()),
        ("unit", setting.unit),
        ("change", setting.mode.value),
        ("importance", setting.importance.value),
        ("default comes from", ", ".join(setting.synonyms)),
        ("effect", "none: accepted, and nothing in Ottla uses it" if setting.effect == "none" else ""),
    ]


def _nothing_found(words: list[str], *, topic: bool) -> str:
    others = [setting for setting in _table(not topic).values() if _matches(setting, words)]
    kind = "broker" if topic else "topic"
    hint = f"; settings of a {kind} do: {'leave out' if topic else 'add'} --topic" if others else ""
    return f"no setting has {' and '.join(words)} in its name or text{hint}"


def _unknown(name: str, *, topic: bool) -> str:
    kind, other = ("topic", "") if topic else ("broker", " --topic")
    if name in _table(not topic):
        return f"{name} is not a {kind} setting; try: ottla config show {name}{other}"
    nearest = get_close_matches(name, _table(topic), n=1)
    return f"unknown {kind} setting {name}" + (f"; did you mean {nearest[0]}?" if nearest else "")
