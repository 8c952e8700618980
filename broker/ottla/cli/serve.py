"""`ottla serve`: start a broker. Parsed by argparse, since typer would double the time to get here."""

import argparse
import sys

from ottla.config.endpoints import PORT_MAX
from ottla.config.loading import load
from ottla.errors import Refusal

__all__ = ["SUMMARY", "main", "pairs"]

SUMMARY = "Start a broker."

EXAMPLES = """\
examples:
  ottla serve
      a broker on 127.0.0.1:9092 with its data in ./ottla-data
  ottla serve --data-dir /var/lib/ottla --port 19092
      another port and directory
  ottla serve --config server.properties --set log.retention.hours=24
      the file of a Kafka broker, one setting changed

Settings have Kafka's names; `ottla config list` shows them. --data-dir and --port win over --set, --set over the file.
An empty directory is formatted by itself for a fleet of one or when cluster.id is set; otherwise see `ottla format`.
Ctrl-C or SIGTERM stops the broker cleanly.
"""


def main(words: list[str]) -> int:
    options = _parser().parse_args(words)
    settings = pairs(options.set)
    if options.port is not None and not 0 <= options.port <= PORT_MAX:
        raise Refusal(f"--port {options.port}: a port is 0 to {PORT_MAX}")
    config = load(options.config, settings, options.data_dir, port=options.port)
    for warning in config.warnings:
        print(f"ottla serve: warning: {warning}", file=sys.stderr)
    from ottla.serving import serve  # imported after the settings are read, so that a bad one is reported at once

    return serve(config)


def pairs(texts: list[str]) -> dict[str, str]:
    """The settings of `--set key=value …`; the last of a name wins."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise Refusal(f"--set {text}: expected key=value, such as --set log.retention.hours=24")
        settings[name.strip()] = value
    return settings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ottla serve",
        description=SUMMARY,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config", metavar="FILE", help="settings in Java properties syntax: a Kafka server.properties"
    )
    parser.add_argument("--data-dir", metavar="DIR", help="where the data lives; the same as --set log.dirs=DIR")
    parser.add_argument(
        "--port",
        type=int,
        metavar="P",
        help="where clients on this machine connect; the same as --set listeners=PLAINTEXT://127.0.0.1:P",
    )
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="one setting; may be given many times"
    )
    return parser
