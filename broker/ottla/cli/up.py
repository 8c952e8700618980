"""`ottla up`: a fleet on this machine with a pipeline over sample events, to see everything at work."""

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from ottla.cli.control import ControlClient
from ottla.cli.fleet import DEFAULT_FOLDER, DataDir
from ottla.cli.fleet_plan import DEFAULT_PORT, FleetPlan, check_settings, keep, make_plan, refuse_taken_ports
from ottla.cli.fleet_processes import FleetProcesses, alone, end_with_parent
from ottla.cli.fleet_view import render
from ottla.cli.terminal import make_console, stop_asked
from ottla.errors import Refusal

__all__ = ["HELP", "up"]

HELP = """\
Start three brokers in three racks, feed sample events, run the pipeline `sessions` over them, and print its table.

The brokers stay up until Ctrl-C. Started again with the same DIR, everything goes on where it was.
"""

RACKS = ("a", "b", "c")
START_S_MAX, PIPELINE_STOP_S_MAX = 60.0, 40.0
TEND_S = 0.2
JAVA_MISSING = "Spark needs Java 17 or newer; install it (Debian: sudo apt-get install openjdk-17-jre-headless)"


def up(
    data_dir: DataDir = DEFAULT_FOLDER,
    port: Annotated[int, typer.Option(metavar="P", help="Kafka port of the first broker.")] = DEFAULT_PORT,
    events: Annotated[int, typer.Option(metavar="N", help="How many sample events.")] = 20_000,
    seed: Annotated[int, typer.Option(metavar="S", help="The same number makes the same events.")] = 1,
) -> None:
    if shutil.which("java") is None:
        raise Refusal(JAVA_MISSING)
    plan = make_plan(data_dir, count=len(RACKS), racks=RACKS, port=port, settings={})
    check_settings(plan)
    with alone(plan):
        other = f"--port {plan.other_port}"
        refuse_taken_ports(plan, advice=f'`ottla up {other}` or `make up ARGS="{other}"`')
        keep(plan)
        status = _run(plan, make_console(), ["--events", str(events), "--seed", str(seed)])
    if status:
        raise typer.Exit(status)


def _run(plan: FleetPlan, console: Console, sample: list[str]) -> int:
    """The pipeline's exit status."""
    stopping = stop_asked()
    processes = FleetProcesses(plan, lambda line: console.print(line, soft_wrap=True))
    try:
        processes.start()
        _await_brokers(plan, processes, console, stopping)
        status = _run_pipeline(plan, processes, sample, stopping)
        if not stopping():
            ended = "" if status == 0 else f"the pipeline ended with exit status {status}; "
            console.print(f"{ended}the brokers stay up: bootstrap {plan.bootstrap}; Ctrl-C stops them", soft_wrap=True)
        while not stopping():
            processes.tend()
            time.sleep(TEND_S)
        return status
    finally:
        processes.stop()


def _await_brokers(plan: FleetPlan, processes: FleetProcesses, console: Console, stopping: Callable[[], bool]) -> None:
    client, deadline = ControlClient(plan.control_addresses), time.monotonic() + START_S_MAX
    try:
        while not stopping():
            processes.tend()
            with contextlib.suppress(Refusal):  # no controller is elected yet
                fleet = client.describe()
                # A voter that has not registered as a broker has no listeners yet.
                if sum(bool(node.listeners) and not node.fenced for node in fleet.nodes) == len(plan.brokers):
                    console.print(render(fleet))
                    return
            if time.monotonic() > deadline:
                raise Refusal(f"the brokers are not up after {START_S_MAX:g} s; see {plan.folder}/broker-*/ottla.log")
            time.sleep(TEND_S)
    finally:
        client.close()


def _run_pipeline(plan: FleetPlan, processes: FleetProcesses, sample: list[str], stopping: Callable[[], bool]) -> int:
    """In a process of its own: Spark brings a JVM and signal handlers along."""
    folder = f"{plan.folder}/pipelines/sessions"
    words = ["pipeline", "run", "sessions", "--bootstrap", plan.bootstrap, "--folder", folder, *sample]
    pipeline = subprocess.Popen(
        [sys.executable, "-m", "ottla", *words],
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us: we stop it in order
        preexec_fn=end_with_parent,
    )
    try:
        while pipeline.poll() is None and not stopping():
            processes.tend()
            time.sleep(TEND_S)
    finally:
        _stop(pipeline)
    return pipeline.returncode if not stopping() else 0


def _stop(pipeline: "subprocess.Popen[bytes]") -> None:
    if pipeline.poll() is not None:
        return
    pipeline.send_signal(signal.SIGTERM)
    try:
        pipeline.wait(PIPELINE_STOP_S_MAX)
    except subprocess.TimeoutExpired:
        pipeline.kill()
        pipeline.wait()
