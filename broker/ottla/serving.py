"""`ottla serve` after its settings are read: the two loops, signals, and one node until it is told to stop.

The control loop runs in the main thread, where signals arrive: SIGTERM is heard while the data loop is held.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
import time

from ottla.collector import FullCollections, settle_objects
from ottla.config import BrokerConfig
from ottla.handover import Handover, LoopLane
from ottla.loops import ControlLoop, DataLoop, forgive_grpc
from ottla.net.health import HealthServer
from ottla.net.log_lines import BoundedFormatter, limit_lines
from ottla.net.metrics_access import MetricsAccess
from ottla.node import Node, metering
from ottla.node.node import DataLoopStuck
from ottla.system import RealThreads, System, file_limit, files_problem, raise_file_limit
from ottla.telemetry.lag import LoopLag
from ottla.telemetry.meters import Meters

__all__ = ["serve"]

log = logging.getLogger("ottla")

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LOG_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
STILL_STARTING_SECONDS = 10.0
# How long a thread that computes may keep another one waiting for the interpreter's lock. The data loop gives it up
# with every system call and waits for it again: beside a decision of 80 ms on the control loop a record took 105 to
# 165 ms with Python's default of 5 ms, and takes 40 to 55 ms with this.
SWITCH_SECONDS = 0.0005
CONTROL_THREADS = 2  # the metadata log is written by one at a time, and a snapshot is made beside it
# For tests: seconds that SIGUSR1 (asleep) and SIGUSR2 (busy) hold the data loop.
HOLD_SECONDS = "OTTLA_TEST_HOLD_DATA_LOOP_SECONDS"


def serve(config: BrokerConfig) -> int:
    """Run a node until SIGTERM or Ctrl-C. Raises Refusal when it cannot start or go on."""
    _begin_log()
    _tune_malloc()
    sys.setswitchinterval(SWITCH_SECONDS)
    raise_file_limit()
    if problem := files_problem(file_limit(), logs_wanted=config["ottla.open.files.max"]):
        log.warning("%s", problem)
    try:
        with asyncio.Runner(loop_factory=ControlLoop) as runner, DataLoop() as data:
            return runner.run(_serve(config, data))
    except DataLoopStuck as stuck:
        log.error("node %d ends without closing its logs: %s", config.node_id, stuck)
        logging.shutdown()
        os._exit(1)  # not by way of the interpreter's end, which would wait for the thread


def _begin_log() -> None:
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(BoundedFormatter(LOG_LINE))
    logging.basicConfig(handlers=[lines], level=logging.INFO)
    limit_lines()


async def _serve(config: BrokerConfig, data: DataLoop) -> int:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    forgive_grpc()
    system = System(threads=RealThreads(config["num.io.threads"]))
    handover = Handover(control=LoopLane(), data=data.lane, clock=system.clock)
    _hold_for_tests(handover)
    if "broker" in config.roles and isinstance(loop, ControlLoop):
        loop.share_grpc(handover.pulse)
    node = Node(config, system, handover=handover, control_threads=RealThreads(CONTROL_THREADS))
    health = await _probed(config, node, _meters(node, handover, system))
    if not await _started(node, stop):
        return 0
    settle_objects()
    FullCollections().start()
    listeners = config.listeners if node.ports else ()
    places = ", ".join(f"{e.name}://{e.host or '0.0.0.0'}:{node.ports[e.name]}" for e in listeners)
    log.info(
        "%s %d of cluster %s serves %s",
        "broker" if places else "controller",
        config.node_id,
        node.cluster_id,
        places or "the quorum",
    )
    await _until(stop, node.failed)
    await node.stop()
    if health is not None:
        await health.stop()
    log.info("%s %d stopped; everything is on the disk", "broker" if places else "controller", config.node_id)
    return 0


def _meters(node: Node, handover: Handover, system: System) -> Meters:
    lags = {"control": LoopLag(system.clock)}
    handover.control.post(lags["control"].start)
    if "broker" in node.config.roles:
        lags["data"] = LoopLag(system.clock)
        handover.data.post(lags["data"].start)
    process = metering.of_process(pulse_age_s=handover.pulse.age_s if "data" in lags else None, lags=lags)
    return Meters(lambda: process | node.readings(), clock=system.clock, threads=system.threads)


async def _probed(config: BrokerConfig, node: Node, meters: Meters) -> HealthServer | None:
    """Before the node starts: it may wait long for a quorum, and lives meanwhile."""
    port = config["ottla.health.port"]
    if port is None:
        return None
    health = HealthServer(
        port,
        not_alive=node.not_alive,
        not_ready=node.not_serving,
        metrics=meters.prometheus,
        access=MetricsAccess.of(config),
    )
    log.info("probes and /metrics are answered on port %d", await health.start())
    return health


async def _started(node: Node, stop: asyncio.Event) -> bool:
    """False when told to stop first: a node of a fleet may wait long for a quorum."""
    starting, stopping = asyncio.ensure_future(node.start()), asyncio.ensure_future(stop.wait())
    first, either = asyncio.FIRST_COMPLETED, {starting, stopping}
    while not (await asyncio.wait(either, timeout=STILL_STARTING_SECONDS, return_when=first))[0]:
        log.info("not serving yet: %s", node.not_serving())
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
        return False
    starting.result()
    return True


def _hold_for_tests(handover: Handover) -> None:
    seconds = os.environ.get(HOLD_SECONDS)
    if seconds is None:
        return

    def busy() -> None:
        until = time.monotonic() + float(seconds)
        while time.monotonic() < until:
            pass

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, handover.data.post, time.sleep, float(seconds))
    loop.add_signal_handler(signal.SIGUSR2, handover.data.post, busy)


def _tune_malloc() -> None:
    """Megabytes that are used again and again stay: asking the kernel each time costs ten copies. But in one pool:
    otherwise each of gRPC's threads keeps what it freed in one of its own."""
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 16 << 20)
        libc.mallopt(M_TRIM_THRESHOLD, 64 << 20)
        libc.mallopt(M_ARENA_MAX, 1)


async def _until(stop: asyncio.Event, failed: "asyncio.Future[None]") -> None:
    stopping = asyncio.ensure_future(stop.wait())
    failed.add_done_callback(lambda _: stopping.cancel())
    await asyncio.wait([stopping])
    if failed.done():
        failed.result()
