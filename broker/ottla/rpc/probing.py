"""Is a process gone? The kernel of its machine says so at once: it refuses connections to a port nobody listens on."""

import asyncio

__all__ = ["nobody_listens", "split_address"]

# A dying process may lose its connections a moment before its listening socket.
PROBE_PAUSES_S = (0.0, 0.02, 0.1)
PROBE_SECONDS_MAX = 0.5


async def nobody_listens(address: str) -> bool:
    """True only when connections are refused; a node that is slow or cut off is not gone."""
    for pause in PROBE_PAUSES_S:
        await asyncio.sleep(pause)
        if await _is_refused(*split_address(address)):
            return True
    return False


async def _is_refused(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError):
        return False
    writer.close()
    return False


def split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
