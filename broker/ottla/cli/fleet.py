"""`ottla fleet`: a fleet on this machine, and the state of any fleet."""

import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.live import Live

from ottla.cli.control import ControlClient
from ottla.cli.control_access import Ca, Cert, Key
from ottla.cli.fleet_addresses import control_client, explained
from ottla.cli.fleet_plan import (
    DEFAULT_PORT,
    HOST,
    FleetPlan,
    check_settings,
    keep,
    make_plan,
    refuse_taken_ports,
)
from ottla.cli.fleet_processes import FleetProcesses, alone
from ottla.cli.fleet_security import ADMIN, FleetSecurity
from ottla.cli.fleet_view import ProcessState, render, summary
from ottla.cli.format import format_data
from ottla.cli.serve import pairs
from ottla.cli.terminal import make_console, stop_asked
from ottla.config.loading import load
from ottla.errors import Refusal

if TYPE_CHECKING:
    from ottla.pb import control_pb2 as pb

__all__ = ["HELP", "commands", "with_port"]

HELP = """\
Run a fleet of brokers on this machine; show and drain brokers of any fleet.

\b
examples:
  ottla fleet up -n 3 --racks a,b,c      three brokers in three racks on ports 9092, 9093, 9094
  ottla fleet status                     who leads what, and whether all is in sync
  ottla fleet drain 2                    move leadership away from broker 2
"""

UP = """\
Start brokers as processes of this machine and keep them running until Ctrl-C.

Broker 0 listens on --port, broker 1 on the next one, and so on; their gRPC ports are 100 (control) and 200
(replication) higher. With --set ottla.health.port=H, their probes and metrics are at H, H+1, and so on. Each has a
folder DIR/broker-ID with its data, its log (ottla.log) and its process id (ottla.pid). A broker that dies is started
again after a second: try `kill -9 $(cat data/broker-1/ottla.pid)`. Started again with the same DIR, the fleet goes on
with its data.

\b
examples:
  ottla fleet up -n 3 --racks a,b,c
  ottla fleet up -n 3 --port 19092 --data-dir /tmp/fleet --set log.retention.hours=24
  ottla fleet up -n 3 --secure           then: kafka-topics.sh --command-config data/client.properties …
"""

DRAIN = """\
Move leadership away from a broker, so that it can go without anybody noticing; with --all-replicas move its replicas
to other brokers too. Waits until that is done; Ctrl-C stops waiting, not moving.

Leadership comes back by itself while the broker runs: the controller looks for it every
leader.imbalance.check.interval.seconds (300), unless auto.leader.rebalance.enable=false; at once by
`kafka-leader-election.sh --election-type preferred`. Replicas do not: `kafka-reassign-partitions.sh` moves them back.
"""

TEND_S, REFRESH_S = 0.2, 1.0
DEFAULT_FOLDER = "data"
commands = typer.Typer(no_args_is_help=True)
DataDir = Annotated[str, typer.Option(metavar="DIR", help="Where the local fleet lives.")]
Nodes = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,…", help="gRPC ports (ottla.grpc.port) of its nodes; else those of the local fleet."
    ),
]
OldNodes = Annotated[str | None, typer.Option("--bootstrap", hidden=True)]
"""What --nodes was called before."""


@commands.command("up", help=UP)
def up(
    count: Annotated[int, typer.Option("-n", "--brokers", metavar="N", help="How many brokers.")] = 3,
    racks: Annotated[str, typer.Option(metavar="A,B,…", help="The rack of each broker; none when left out.")] = "",
    data_dir: DataDir = DEFAULT_FOLDER,
    port: Annotated[int, typer.Option(metavar="P", help="Kafka port of the first broker.")] = DEFAULT_PORT,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="For every broker.")] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="TLS and SCRAM on every hop, ACLs, a first user `admin`.")
    ] = False,
) -> None:
    names = [name.strip() for name in racks.split(",")] if racks else []
    plan = make_plan(data_dir, count=count, racks=names, port=port, settings=pairs(settings or []), secure=secure)
    for warning in check_settings(plan):
        print(f"ottla fleet: warning: {warning}", file=sys.stderr)
    with alone(plan):
        refuse_taken_ports(plan, advice=f"`{with_port(plan.other_port)}`")
        if plan.security is not None:
            plan.security.prepare(brokers=len(plan.brokers), bootstrap=plan.bootstrap)
            _format(plan, plan.security)
        keep(plan)
        _run(plan, make_console())


@commands.command("status", help="Show brokers, leaders, and whether all partitions are in sync.")
def status(
    nodes: Nodes = None,
    bootstrap: OldNodes = None,
    data_dir: DataDir = DEFAULT_FOLDER,
    cert: Cert = None,
    key: Key = None,
    ca: Ca = None,
) -> None:
    nodes = nodes or bootstrap
    client = control_client(nodes, data_dir, cert, key, ca)
    with explained(nodes, data_dir, by_tls=client.by_tls):
        fleet = client.describe()
        restartable = {node.id: _verdict(client, node.id) for node in fleet.nodes if "broker" in node.roles}
    make_console().print(render(fleet, restartable=restartable))


@commands.command("drain", help=DRAIN)
def drain(
    broker: Annotated[int, typer.Argument(metavar="BROKER", help="Its id.")],
    all_replicas: Annotated[bool, typer.Option("--all-replicas", help="Replicas too, not only leadership.")] = False,
    nodes: Nodes = None,
    bootstrap: OldNodes = None,
    data_dir: DataDir = DEFAULT_FOLDER,
    cert: Cert = None,
    key: Key = None,
    ca: Ca = None,
) -> None:
    nodes = nodes or bootstrap
    client, shown = control_client(nodes, data_dir, cert, key, ca), ""
    while True:
        with explained(nodes, data_dir, by_tls=client.by_tls):
            reply = client.drain(broker, all_replicas=all_replicas)
        left = f"{reply.leaders_left} leaders" + (f", {reply.replicas_left} replicas" if all_replicas else "")
        if left != shown:
            print(f"broker {broker}: {left} left", flush=True)
            shown = left
        if reply.done:
            print(f"broker {broker} may be stopped now", flush=True)
            return
        if reply.stuck and len(reply.stuck) >= reply.leaders_left + (reply.replicas_left if all_replicas else 0):
            raise Refusal("; ".join(f"{one.topic}-{one.partition}: {one.reason}" for one in reply.stuck))
        time.sleep(REFRESH_S)


def with_port(port: int) -> str:
    """The command as it was given, with another port."""
    words = shlex.join(["ottla", *sys.argv[1:]])
    return f"{re.sub(r' --port[ =][^ ]+', '', words)} --port {port}"


def _format(plan: FleetPlan, security: FleetSecurity) -> None:
    """The first user is in the metadata of every node from its beginning."""
    for broker in plan.brokers:
        format_data(load(None, broker.settings, broker.data_dir), add_scram=security.first_users())


def _verdict(client: ControlClient, broker: int) -> str:
    reply = client.may_restart(broker)
    if reply.yes:
        return "yes"
    first = [*reply.reasons, *(f"{one.topic}-{one.partition} {one.reason}" for one in reply.partitions)]
    return f"no: {first[0]}" + (f" (and {len(first) - 1} more)" if len(first) > 1 else "") if first else "no"


def _run(plan: FleetPlan, console: Console) -> None:
    """Until SIGTERM or Ctrl-C."""
    stopping = stop_asked()
    processes = FleetProcesses(plan, lambda line: console.print(line, soft_wrap=True))
    client = ControlClient(plan.control_addresses, plan.security.credentials() if plan.security else None)
    try:
        processes.start()
        console.print(f"bootstrap {plan.bootstrap}; data in {plan.folder}; Ctrl-C stops", soft_wrap=True)
        if plan.security is not None:
            files = f"{plan.security.client_properties} and {plan.security.librdkafka_conf}"
            console.print(f"secured; clients log in as {ADMIN} with {files}", soft_wrap=True)
            console.print(f"audit trail: {plan.folder}/broker-*/audit.log", soft_wrap=True)
        if console.is_terminal:
            _watch_live(plan, processes, client, console, stopping)
        else:
            _watch_lines(processes, client, console, stopping)
    finally:
        client.close()
        processes.stop()


def _watch_live(
    plan: FleetPlan, processes: FleetProcesses, client: ControlClient, console: Console, stopping: Callable[[], bool]
) -> None:
    with Live(console=console, auto_refresh=False) as live:
        for fleet in _descriptions(processes, client, stopping):
            live.update(render(fleet, _states(plan, processes)), refresh=True)


def _watch_lines(
    processes: FleetProcesses, client: ControlClient, console: Console, stopping: Callable[[], bool]
) -> None:
    """A line whenever something changed."""
    shown = ""
    for fleet in _descriptions(processes, client, stopping):
        up = [str(node.id) for node in fleet.nodes if "broker" in node.roles and not node.fenced] if fleet else []
        line = f"brokers up: {', '.join(up) or 'none'}; {summary(fleet)}"
        if line != shown:
            console.print(line, soft_wrap=True)
            shown = line


def _descriptions(
    processes: FleetProcesses, client: ControlClient, stopping: Callable[[], bool]
) -> Iterator["pb.DescribeFleetReply | None"]:
    """The fleet's description, about once a second; in between, brokers that died are started again."""
    refresh_at_s = 0.0
    while not stopping():
        processes.tend()
        if time.monotonic() >= refresh_at_s:
            yield _describe(client)
            refresh_at_s = time.monotonic() + REFRESH_S
        time.sleep(TEND_S)


def _describe(client: ControlClient) -> "pb.DescribeFleetReply | None":
    try:
        return client.describe()
    except Refusal:
        return None


def _states(plan: FleetPlan, processes: FleetProcesses) -> list[ProcessState]:
    return [
        ProcessState(b.id, b.rack or "", f"{HOST}:{b.port}", processes.pid(b.id), processes.restarts[b.id])
        for b in plan.brokers
    ]
