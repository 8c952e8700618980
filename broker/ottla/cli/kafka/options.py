"""Where Kafka is and how to log in there: the two options of all commands that ask it."""

from typing import Annotated

import typer

from ottla.cli.kafka.client import KafkaClient
from ottla.cli.kafka.settings import ClientSettings, read_settings

__all__ = ["Bootstrap", "Config", "connect", "reached"]

HERE = "127.0.0.1:9092"
Bootstrap = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,…",
        help=f"Brokers' ports for clients; else bootstrap.servers of --command-config, else {HERE}.",
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="How to log in there: settings in the names of librdkafka or of Java's clients.",
    ),
]


def connect(bootstrap: str | None, config: str | None) -> KafkaClient:
    return KafkaClient(*reached(bootstrap, config))


def reached(bootstrap: str | None, config: str | None) -> tuple[str, ClientSettings]:
    """What was said at the command line comes before what the file says."""
    settings = read_settings(config)
    return bootstrap or settings.bootstrap or HERE, settings
