"""Who is told when a partition moves: fetches that wait, and the copies that followers make."""

from typing import TYPE_CHECKING, Protocol

from ottla.errors import Code

if TYPE_CHECKING:
    from ottla.replica.partition import Partition

__all__ = ["ROLE_CHANGED_BYTES", "Copy", "Watcher"]

ROLE_CHANGED_BYTES = 1 << 62


class Watcher(Protocol):
    def moved(self, partition: "Partition", appended_bytes: int) -> None:
        """The partition's readable end moved by about so many bytes, or its role changed (then ROLE_CHANGED_BYTES)."""


class Copy(Protocol):
    """A follower's copy in the making, at the leader."""

    def appended(self) -> None: ...
    def watermark_moved(self) -> None:
        """Or the log's start."""

    def ended(self, code: Code) -> None:
        """This broker leads the partition no longer, or in another epoch."""
