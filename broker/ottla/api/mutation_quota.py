"""controller_mutation_rate (KIP-599): how many partitions a client may create and delete per second.

Each broker measures the requests it receives. Clients that know THROTTLING_QUOTA_EXCEEDED are refused while they exceed
their quota; older ones are served and throttled.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ottla.api.call import Call
from ottla.errors import Code

__all__ = ["OVER_QUOTA", "charge_permissively", "within_quota"]

OVER_QUOTA = (Code.throttling_quota_exceeded, "The throttling quota has been exceeded.")
Item = TypeVar("Item")


def within_quota(
    items: Sequence[Item], cost: Callable[[Item], int], call: Call, *, strict_since: int
) -> tuple[list[Item], list[Item]]:
    """The allowed items, and the refused ones."""
    mutations = call.allowance.mutations if call.allowance is not None else None
    if mutations is None:
        return list(items), []
    accepted: list[Item] = []
    refused: list[Item] = []
    for item in items:
        if call.version >= strict_since and mutations.pause_ms() > 0:
            refused.append(item)
        else:
            mutations.charge(cost(item))
            accepted.append(item)
    if refused or call.version < strict_since:
        call.throttle_ms = max(call.throttle_ms, mutations.pause_ms())
    return accepted, refused


def charge_permissively(partitions: int, call: Call) -> None:
    """For topics that a Metadata request creates."""
    mutations = call.allowance.mutations if call.allowance is not None else None
    if mutations is not None:
        mutations.charge(partitions)
        call.throttle_ms = max(call.throttle_ms, mutations.pause_ms())
