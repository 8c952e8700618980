"""`ottla serve` after its settings are read: the event loop, signals, and one node until it is told to stop."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import signal
import sys

from ottla.config import BrokerConfig
from ottla.net.health import HealthServer
from ottla.node import Node
from ottla.system import RealThreads, System, raise_file_limit

__all__ = ["serve"]

log = logging.getLogger("ottla")

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LOG_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def serve(config: BrokerConfig) -> int:
    """Run a node until SIGTERM or Ctrl-C. Raises Refusal when it cannot start or go on."""
    import uvloop

    logging.basicConfig(format=LOG_LINE, level=logging.INFO, stream=sys.stderr)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(config))


async def _serve(config: BrokerConfig) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    _tune_malloc()
    raise_file_limit()
    node = Node(config, System(threads=RealThreads(config["num.io.threads"])))
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
    health = HealthServer(port, node.not_serving)
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
