"""What is behind an address?

Is a process gone? The kernel of its machine says so at once: it refuses connections to a port nobody listens on.
"""

import asyncio
import struct

__all__ = ["answers_as_kafka", "nobody_listens", "split_address"]

# A dying process may lose its connections a moment before its listening socket.
PROBE_PAUSES_S = (0.0, 0.02, 0.1)
PROBE_SECONDS_MAX = 0.5
KAFKA_SECONDS_MAX = 1.0
CORRELATION_ID = 0x4F74746C
# ApiVersions, version 0, no client id: who speaks Kafka's protocol answers it before anybody has logged in.
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, CORRELATION_ID, -1)


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


async def answers_as_kafka(address: str) -> bool:
    """Whether Kafka clients are served there in plaintext, logged in or not."""
    try:
        async with asyncio.timeout(KAFKA_SECONDS_MAX):
            reader, writer = await asyncio.open_connection(*split_address(address))
            try:
                writer.write(API_VERSIONS)
                head = await reader.readexactly(8)
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
    return bool(struct.unpack(">ii", head)[1] == CORRELATION_ID)


def split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
