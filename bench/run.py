"""`make bench`: all workloads on both brokers, in alternating rounds; medians, ratios and a verdict by the goals.

`--compare OLD NEW` takes two commits of Ottla instead of the two brokers.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

from rich.console import Console
from support.kafka_jars import MissingProgram, kafka_jars

from bench import (
    compare,
    consume,
    fleet,
    groups,
    latency,
    memory,
    produce_java,
    produce_librdkafka,
    results,
    secured,
    share,
    start,
    transactions,
)
from bench.context import Context
from bench.report import print_last_line, print_table, write_json
from bench.rows import Reading, make_rows

Workload: TypeAlias = Callable[[Context], Iterator[Reading]]
WORKLOADS: dict[str, Workload] = {
    "produce-librdkafka": produce_librdkafka.run,
    "produce-java": produce_java.run,
    "consume": consume.run,
    "latency": latency.run,
    "start": start.run,
    "memory": memory.run,
    "fleet": fleet.run,
    "groups": groups.run,
    "transactions": transactions.run,
    "share": share.run,
    "secured": secured.run,
}
PEER_NAMES = ("kafka", "ottla")
ROUNDS = 3
# A last round is left out rather than passing the time that people were promised.
TIME_LIMIT_S = 38 * 60
LOAD_ROW = "produce librdkafka 1000 B × 1p"


def main() -> None:
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its brokers end with it
    terminal = Console()
    # Without a terminal there is no width to keep to: a table in a log must not wrap.
    console = terminal if terminal.is_terminal else Console(width=180)
    try:
        kafka_jars()
    except MissingProgram as missing:
        sys.exit(str(missing))
    if options.compare:
        compare_commits(options, console)
        return
    peers = [options.peer] if options.peer else list(PEER_NAMES)
    readings = measure(options, {peer: Context(peer=peer, quick=options.quick) for peer in peers}, console)
    rows = make_rows(readings)
    write_json(rows)
    if options.results:
        results.write(rows, rounds=options.rounds)
    print_table(rows, console)
    print_last_line(rows, console)


def compare_commits(options: argparse.Namespace, console: Console) -> None:
    """The peers are the two commits; each is an Ottla with its own program."""
    (old, old_program), (new, new_program) = map(compare.program_of, options.compare)
    programs = {"old": old_program, "new": new_program}
    contexts = {name: Context(peer="ottla", quick=options.quick, program=path) for name, path in programs.items()}
    compare.report(compare.changes(measure(options, contexts, console)), old=old, new=new, console=console)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, a tenth of the work: to see that it runs")
    parser.add_argument("--only", action="append", choices=list(WORKLOADS), help="this workload (may be repeated)")
    parser.add_argument("--peer", choices=PEER_NAMES, help="only this broker")
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--results", action="store_true", help="write bench/RESULTS.md")
    parser.add_argument(
        "--compare", nargs=2, metavar=("OLD", "NEW"), help="two commits of Ottla instead of two brokers"
    )
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    return options


def measure(options: argparse.Namespace, contexts: dict[str, Context], console: Console) -> dict[str, list[Reading]]:
    """Readings by peer. Which peer goes first alternates, so that neither always meets the cooler machine."""
    peers = list(contexts)
    readings: dict[str, list[Reading]] = {peer: [] for peer in peers}
    begin = time.monotonic()
    for number in range(options.rounds):
        round_begin = time.monotonic()
        for name in options.only or WORKLOADS:
            for peer in peers if number % 2 == 0 else reversed(peers):
                passed_s = time.monotonic() - begin
                console.print(f"[dim]{passed_s:5.0f} s  round {number + 1}: {name} on {peer}[/dim]", highlight=False)
                readings[peer] += shown(WORKLOADS[name](contexts[peer]), console)
            settle_half_load(contexts, readings)
        now = time.monotonic()
        if now - begin + (now - round_begin) > TIME_LIMIT_S and number + 1 < options.rounds:
            console.print(f"[yellow]only {number + 1} rounds: another would pass the time limit[/yellow]")
            break
    return readings


def shown(readings: Iterator[Reading], console: Console) -> Iterator[Reading]:
    for reading in readings:
        limit = reading.limited_by.split(" ")[0]
        console.print(f"         {reading.name}: {reading.value:,.2f} {reading.unit}  {limit}", highlight=False)
        yield reading


def settle_half_load(contexts: dict[str, Context], readings: dict[str, list[Reading]]) -> None:
    """The rate for open-loop latency, the same for both brokers and all rounds: half of Kafka's own first rate."""
    measured = next((reading for reading in readings.get("kafka", []) if reading.name == LOAD_ROW), None)
    for context in contexts.values():
        if measured:
            context.half_load_records_per_s = int(measured.value * 1e6 / 1000 / 2)


if __name__ == "__main__":
    main()
