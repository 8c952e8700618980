"""The result of reading a log. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.ports import Buffer

__all__ = ["Slice"]


class Slice(NamedTuple):
    """Whole batches, and the aborted transactions among them: (producer id, first offset), sorted by first offset."""

    data: Buffer
    aborted: Sequence[tuple[int, int]]
