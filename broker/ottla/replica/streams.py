"""What replication needs of the network: one stream of frames to another broker, in order, as long as it lasts."""

from collections.abc import Callable
from typing import Protocol

__all__ = ["Connect", "Stream", "StreamLost"]


class StreamLost(Exception):
    """The other side is gone, or was never reached."""


class Stream(Protocol):
    async def send(self, frame: bytes) -> None:
        """Returns when the next one may be sent. StreamLost."""

    async def receive(self) -> bytes | None:
        """The next frame; None when the other side has closed the stream. StreamLost."""

    def close(self) -> None: ...


Connect = Callable[[str], Stream]
"""A new stream to the gRPC server at host:port."""
