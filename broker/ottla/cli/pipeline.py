"""`ottla pipeline`: the PySpark pipelines, run on this machine. PySpark is imported when one is run, not before."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ottla.cli.terminal import make_console, stop_asked
from ottla.errors import Refusal

if TYPE_CHECKING:
    from ottla_pipelines.sample.answer import Session

__all__ = ["HELP", "commands"]

HELP = """\
Run PySpark pipelines over the topics of a fleet.

\b
examples:
  ottla pipeline list                                     what there is
  ottla pipeline run sessions --events 20000 --seed 1     over sample events, whose answer is known
  ottla pipeline run sessions                             over what is in the topics, until Ctrl-C
"""

RUN = """\
Run a pipeline on this machine, in Spark's local mode.

With --events, sample records are made from --seed and fed into its topic while it runs; the pipeline ends when it has
worked through them, prints its table, and compares it with the right answer. Without, it runs until Ctrl-C. Started
again with the same --folder, it goes on where it was. It reads and writes in plaintext and without a login: there is
no --command-config, and a fleet of `ottla fleet up --secure` is out of its reach.
"""

NO_LOGIN = " (pipelines come in plaintext and without a login)"
ROWS_SHOWN_MAX = 15
STOPPED_EARLY = 130  # as shells have it for Ctrl-C
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
commands = typer.Typer(no_args_is_help=True)


@commands.command("list", help="Show the pipelines, with the topics that they read and write.")
def list_pipelines() -> None:
    from ottla_pipelines.catalogue import PIPELINES

    table = Table(box=None, header_style="bold")
    for heading in ("pipeline", "reads", "writes", "what it does"):
        table.add_column(heading)
    for pipeline in PIPELINES.values():
        table.add_row(pipeline.name, ", ".join(pipeline.reads), ", ".join(pipeline.writes), pipeline.summary)
    make_console().print(table)


@commands.command("run", help=RUN)
def run(
    name: Annotated[str, typer.Argument(metavar="PIPELINE", help="See `ottla pipeline list`.")],
    bootstrap: Annotated[
        str, typer.Option(metavar="HOST:PORT,…", help="Brokers' ports for clients.")
    ] = DEFAULT_BOOTSTRAP,
    bootstrap_servers: Annotated[str | None, typer.Option(hidden=True)] = None,
    events: Annotated[int | None, typer.Option(metavar="N", help="Feed so many sample records.")] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="The same number makes the same events.")] = 1,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Checkpoint and Spark's log; data/pipelines/… when left out.")
    ] = None,
) -> None:
    _refuse_unknown(name)
    _refuse_without_packages()
    console = make_console()
    _run_sessions(bootstrap_servers or bootstrap, events, seed, folder, console)


def _run_sessions(bootstrap: str, events: int | None, seed: int, folder: Path | None, console: Console) -> None:
    from ottla_pipelines import local, sessions
    from ottla_pipelines.connector import ConnectorUnavailable
    from ottla_pipelines.sample.answer import differences
    from ottla_pipelines.sample.feed import Interrupted
    from ottla_pipelines.sample.kafka import KafkaUnavailable
    from ottla_pipelines.spark_session import JavaMissing
    from pyspark.errors import PySparkException

    sample = None if events is None else local.Sample(events=events, seed=seed)
    try:
        expected = None if sample is None else local.expected_sessions(sample)
        place = (folder or local.default_folder(bootstrap)).absolute()
        options = sessions.Options(bootstrap=bootstrap, checkpoint=f"{place}/checkpoint")
        seen = local.run_sessions(
            options,
            sample,
            folder=place,
            report=lambda line: console.print(line, soft_wrap=True),
            stopped=stop_asked(),
        )
        _show(console, seen)
    except Interrupted:
        console.print("stopped")
        raise typer.Exit(0 if sample is None else STOPPED_EARLY) from None
    except KafkaUnavailable as problem:
        raise Refusal(f"{problem}{NO_LOGIN if str(problem).startswith(bootstrap) else ''}") from None
    except (JavaMissing, ConnectorUnavailable, ValueError) as problem:
        raise Refusal(str(problem)) from None
    except PySparkException as failure:
        raise Refusal(f"Spark: {str(failure).splitlines()[0]}; see {place}/spark.log") from None
    if expected is not None:
        if wrong := differences(expected, seen):
            raise Refusal(f"the answer is wrong in {len(wrong)} places, first: {wrong[0]}")
        console.print(f"all {len(seen)} sessions are as they should be")


def _show(console: Console, sessions: "set[Session]") -> None:
    table = Table(title=f"{len(sessions)} sessions; the longest", title_justify="left", box=None, header_style="bold")
    for heading in ("user", "from", "minutes", "clicks", "pages"):
        table.add_column(heading, justify="right" if heading in ("minutes", "clicks") else "left")
    for session in sorted(sessions, key=lambda one: (-one.clicks, one))[:ROWS_SHOWN_MAX]:
        minutes = (session.end - session.start).total_seconds() / 60
        pages = " ".join(session.pages)
        table.add_row(session.user, f"{session.start:%Y-%m-%d %H:%M:%S}", f"{minutes:.0f}", str(session.clicks), pages)
    console.print(table)


def _refuse_unknown(name: str) -> None:
    from ottla_pipelines.catalogue import PIPELINES

    if name not in PIPELINES:
        raise Refusal(f"there is no pipeline {name}; there are: {', '.join(PIPELINES)}")


def _refuse_without_packages() -> None:
    for package in ("pyspark", "confluent_kafka"):
        if find_spec(package) is None:
            raise Refusal(f"the Python package {package} is missing: pip install 'ottla[spark]'")
