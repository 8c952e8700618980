"""CONFIG.md from the table: `python -m ottla.config.document` writes it, `--check` says whether it is up to date."""

import sys
from collections.abc import Iterable
from pathlib import Path

from ottla.config.differences import ADDED, OTHER_DEFAULTS
from ottla.config.people import allowed, default_for_people
from ottla.config.setting import Setting
from ottla.config.table import BROKER, SUBJECTS, TOPIC

__all__ = ["document", "main"]

PATH = Path(__file__).parents[3] / "CONFIG.md"

INTRODUCTION = """\
<!-- Generated from broker/ottla/config/table by `python -m ottla.config.document`. Do not edit. -->
# Settings

Ottla takes the settings of Apache Kafka 4.1 under their own names: the `server.properties` of a Kafka broker starts it.

```
ottla serve --config server.properties --set log.retention.hours=24
ottla config list retention
ottla config show retention.ms --topic
```

The first of these values that is set holds: the topic's own (`kafka-configs --entity-type topics`), one broker's
(`--entity-type brokers --entity-name 0`), the whole fleet's (`--entity-default`), `--set`, the file, the default.
*Change* says how a broker's setting can be changed: **cluster-wide** while it runs, for one broker or for all;
**per-broker** while it runs, one broker at a time; **read-only** in the file, with a restart.

A name that is not known is warned about and ignored. A setting listed *without effect* is accepted, checked and
reported to clients, but nothing in Ottla uses it.
"""


def document() -> str:
    parts = [INTRODUCTION, _contents(), _topic_part()]
    parts += [_part(title, module.__doc__ or "", module.SETTINGS) for title, module in SUBJECTS]
    parts.append(_differences())
    return "\n".join(parts)


def _contents() -> str:
    titles = ["Topics", *(title for title, _ in SUBJECTS), "Differences from Kafka"]
    return " · ".join(f"[{title}](#{_anchor(title)})" for title in titles) + "\n"


def _anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def _topic_part() -> str:
    rows = [
        (f"`{setting.name}`", default_for_people(setting), allowed(setting), _names(setting.synonyms), setting.doc)
        for setting in TOPIC.values()
        if setting.effect != "none"
    ]
    table = _table(("setting", "default", "allowed", "default comes from", "what it does"), rows)
    idle = [setting for setting in TOPIC.values() if setting.effect == "none"]
    return "## Topics\nSettings of one topic.\n\n" + table + _idle(idle)


def _part(title: str, doc: str, settings: Iterable[Setting]) -> str:
    acting = [setting for setting in settings if setting.effect != "none"]
    rows = [
        (f"`{setting.name}`", default_for_people(setting), allowed(setting), setting.mode.value, setting.doc)
        for setting in acting
    ]
    table = _table(("setting", "default", "allowed", "change", "what it does"), rows) if rows else ""
    idle = [setting for setting in settings if setting.effect == "none"]
    return f"## {title}\n{doc}\n\n" + table + _idle(idle)


def _idle(settings: list[Setting]) -> str:
    if not settings:
        return ""
    rows = [(f"`{setting.name}`", default_for_people(setting), setting.doc) for setting in settings]
    return "\nWithout effect:\n\n" + _table(("setting", "default", "what it means in Kafka"), rows)


def _differences() -> str:
    changed = [(f"`{name}`", default_for_people(BROKER[name]), reason) for name, reason in OTHER_DEFAULTS.items()]
    added = [(f"`{name}`", default_for_people(BROKER[name]), reason) for name, reason in ADDED.items()]
    head = "## Differences from Kafka\nAll other settings have Kafka's type, default, range and update mode.\n\n"
    columns = ("setting", "default here", "why")
    return head + "Other defaults:\n\n" + _table(columns, changed) + "\nAdded:\n\n" + _table(columns, added)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def main(words: list[str]) -> int:
    text = document()
    if words == ["--check"]:
        if PATH.exists() and PATH.read_text() == text:
            return 0
        print(f"{PATH.name} is not what the table says; run: python -m ottla.config.document", file=sys.stderr)
        return 1
    PATH.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
