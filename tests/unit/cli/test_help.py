"""What --help shows is what was written: examples are there to be copied."""

import re
from collections.abc import Iterator

import click
import pytest
import typer
from ottla.cli.main import _commands
from typer.testing import CliRunner

ROOT = _commands()


def every(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], str]]:
    yield path, command.help or ""
    for name, one in getattr(command, "commands", {}).items():
        yield from every(one, *path, name)


@pytest.mark.parametrize(("path", "text"), [*every(typer.main.get_command(ROOT))])
def test_every_example_is_shown_as_it_is_written(path: tuple[str, ...], text: str) -> None:
    shown = CliRunner().invoke(ROOT, [*path, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}).output
    words = " ".join(shown.split())
    for line in re.findall(r"^\s+(ottla .*)$", text.replace("\\[", "["), re.MULTILINE):
        assert " ".join(line.split()) in words
