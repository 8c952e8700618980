"""Checks every setting's `effect` against the sources: `python -m ottla.config.effects`, a part of `make check`.

A setting with an effect is named, in quotes, somewhere outside this package; one without is not.
"""

import sys
from pathlib import Path

from ottla.config.group import GROUP_SETTINGS, Limits
from ottla.config.setting import Setting
from ottla.config.table import BROKER, TOPIC

__all__ = ["main", "untrue"]

SOURCES = Path(__file__).parents[1]

# Read by this package and handed out as attributes of BrokerConfig or in the shape of another setting.
USED_HERE = {
    "advertised.listeners", "broker.id", "controller.listener.names", "internal.segment.bytes",
    "listener.security.protocol.map", "listeners", "log.dir", "log.dirs", "metadata.log.dir", "node.id",
    "process.roles", "cluster.id", "broker.rack", "ssl.client.auth",
    *(name for limits in GROUP_SETTINGS.values() if isinstance(limits, Limits) for name in limits),
}  # fmt: skip


def untrue(text: str) -> list[str]:
    """Sentences about settings whose `effect` differs from what the sources read."""
    through_topics = {name for setting in TOPIC.values() if setting.effect == "full" for name in setting.synonyms}
    found = []
    for setting in (*TOPIC.values(), *BROKER.values()):
        quoted = f'"{setting.name}"' in text
        reached = quoted or setting.name in through_topics or setting.name in USED_HERE or _is_field(setting, text)
        if setting.effect == "full" and not reached:
            found.append(f'{setting.name}: nothing names it; effect="none"?')
        if setting.effect == "none" and quoted:
            found.append(f'{setting.name}: has effect="none", but is named in the sources')
    return found


def _is_field(setting: Setting, text: str) -> bool:
    """The log's settings are fields, named as Kafka names them but with underscores."""
    return setting.name in TOPIC and f"    {setting.name.replace('.', '_')}: " in text


def main() -> int:
    files = [
        path for path in SOURCES.rglob("*.py") if path.relative_to(SOURCES).parts[0] not in ("config", "cli", "pb")
    ]
    problems = untrue("\n".join(path.read_text() for path in files))
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
