"""What replication needs of the network: an ordered stream of frames to another broker."""

from collections.abc import Callable
from typing import Protocol

__all__ = ["Connect", "Stream", "StreamLost"]


class StreamLost(Exception):
    """The connection broke, or could not be opened."""


class Stream(Protocol):
    async def send(self, frame: bytes) -> None:
        """Returns when the next frame may be sent. Raises StreamLost."""

    async def receive(self) -> bytes | None:
        """The next frame; None when the other side has closed the stream. Raises StreamLost."""

    def close(self) -> None: ...


Connect = Callable[[str], Stream]
"""A new stream to the gRPC server at host:port."""
