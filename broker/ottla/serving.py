"""`ottla serve` after its settings are read: the two loops, signals, and one node until it is told to stop.

The control loop runs in the main thread, where signals arrive: SIGTERM is heard while the data loop is held.
"""

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from ottla.config import BrokerConfig
from ottla.handover import Handover, LoopLane
from ottla.net.health import HealthServer
from ottla.node import Node
from ottla.node.node import DataLoopStuck
from ottla.system import RealThreads, System

__all__ = ["serve"]

log = logging.getLogger("ottla")

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LOG_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
CONTROL_THREADS = 2  # the metadata log is written by one at a time, and a snapshot is made beside it
DATA_LOOP_END_SECONDS_MAX = 5.0
# For tests: seconds that SIGUSR1 (asleep) and SIGUSR2 (busy) hold the data loop.
HOLD_SECONDS = "OTTLA_TEST_HOLD_DATA_LOOP_SECONDS"


def serve(config: BrokerConfig) -> int:
    """Run a node until SIGTERM or Ctrl-C. Raises Refusal when it cannot start or go on."""
    import uvloop

    logging.basicConfig(format=LOG_LINE, level=logging.INFO, stream=sys.stderr)
    _tune_malloc()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, _DataLoop() as data:
            return runner.run(_serve(config, data))
    except DataLoopStuck as stuck:
        log.error("node %d ends without closing its logs: %s", config.node_id, stuck)
        logging.shutdown()
        os._exit(1)  # not by way of the interpreter's end, which would wait for the thread


class _DataLoop(contextlib.AbstractContextManager["_DataLoop"]):
    """The data loop in a thread of its own, from entering to leaving."""

    def __init__(self) -> None:
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ottla-data", daemon=True)
        self.lane: LoopLane
        self._stop: Callable[[], None]

    def __enter__(self) -> "_DataLoop":
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.lane.post(self._stop)
        self._thread.join(DATA_LOOP_END_SECONDS_MAX)

    def _run(self) -> None:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._turn())

    async def _turn(self) -> None:
        stop = asyncio.Event()
        self.lane, self._stop = LoopLane(), stop.set
        _forgive_grpc()
        self._started.set()
        await stop.wait()


async def _serve(config: BrokerConfig, data: _DataLoop) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    _forgive_grpc()
    system = System(threads=RealThreads(config["num.io.threads"]))
    handover = Handover(control=LoopLane(), data=data.lane, clock=system.clock)
    _hold_for_tests(handover)
    node = Node(config, system, handover=handover, control_threads=RealThreads(CONTROL_THREADS))
    health = await _probed(config, node)
    if not await _started(node, stop):
        return 0
    _settle_memory()
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


async def _probed(config: BrokerConfig, node: Node) -> HealthServer | None:
    """Before the node starts: it may wait long for a quorum, and lives meanwhile."""
    port = config["ottla.health.port"]
    if port is None:
        return None
    health = HealthServer(port, not_alive=node.not_alive, not_ready=node.not_serving)
    log.info("probes are answered on port %d", await health.start())
    return health


async def _started(node: Node, stop: asyncio.Event) -> bool:
    """False when told to stop first: a node of a fleet may wait long for a quorum."""
    starting, stopping = asyncio.ensure_future(node.start()), asyncio.ensure_future(stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
        return False
    starting.result()
    return True


def _forgive_grpc() -> None:
    """All loops of a process read gRPC's one wake-up socket, and those that come second find it empty."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        if not isinstance(context.get("exception"), BlockingIOError):
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(handle)


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


def _settle_memory() -> None:
    """What lives as long as the node need not be looked at by every collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _until(stop: asyncio.Event, failed: "asyncio.Future[None]") -> None:
    stopping = asyncio.ensure_future(stop.wait())
    failed.add_done_callback(lambda _: stopping.cancel())
    await asyncio.wait([stopping])
    if failed.done():
        failed.result()
