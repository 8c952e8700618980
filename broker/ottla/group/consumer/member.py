"""One member of a consumer group (KIP-848), and how it is reconciled with its target assignment. Pure, immutable.

Two records of the offsets topic describe a member: its subscription, and its current assignment (`Position`).

    STABLE ─────── new target, nothing to revoke, all partitions free ─────▶ STABLE (target epoch)
      │ has to revoke partitions               │ other members still own some of them
      ▼                                        ▼
    UNREVOKED ── it reports them revoked ─▶ UNRELEASED (target epoch) ── they are free at a heartbeat ─▶ STABLE
"""

from collections.abc import Container, Iterable
from enum import IntEnum

import msgspec

__all__ = [
    "LEAVING",
    "LEAVING_TEMPORARILY",
    "ClassicMember",
    "Member",
    "MemberState",
    "Partition",
    "Partitions",
    "Position",
    "Subscription",
    "reconciled",
    "subscribed_bytes",
]

Partition = tuple[bytes, int]
"""A topic's id, as the 16 bytes of the wire, and a partition's number."""
Partitions = frozenset[Partition]

LEAVING = -1
LEAVING_TEMPORARILY = -2


class MemberState(IntEnum):
    """Kafka's numbers."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class ClassicMember(msgspec.Struct, frozen=True):
    """What a member that still uses the classic protocol has sent: `protocols` are (name, metadata)."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


NAME_OVERHEAD_BYTES = 64  # of a string and its entry in a set


def subscribed_bytes(topics: Iterable[str] | None, *texts: str | None) -> int:
    """Estimates the memory of a subscription's topic names and other texts."""
    names = list(topics or ())
    return sum(map(len, names)) + len(names) * NAME_OVERHEAD_BYTES + sum(len(text) for text in texts if text)


class Subscription(msgspec.Struct, frozen=True):
    """`regex` empty or None: no expression. `classic` is set only while the member uses the classic protocol."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMember | None = None

    @property
    def kept_bytes(self) -> int:
        own = self.classic.protocols if self.classic is not None else ()
        texts = (self.instance_id, self.rack_id, self.client_id, self.client_host, self.regex)
        return subscribed_bytes(self.topics, *texts) + sum(len(name) + len(metadata) for name, metadata in own)


class Position(msgspec.Struct, frozen=True):
    """The epoch that a member is expected to send, and the partitions it may own or has to revoke."""

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Partitions = frozenset()
    revoking: Partitions = frozenset()

    def moved(self, *, epoch: int, state: MemberState, assigned: Partitions, revoking: Partitions) -> "Position":
        return Position(epoch, self.epoch, state, assigned, revoking)


class Member(msgspec.Struct, frozen=True):
    id: str
    subscription: Subscription = Subscription()
    position: Position = Position()

    @property
    def uses_classic(self) -> bool:
        return self.subscription.classic is not None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.position.state is MemberState.STABLE and self.position.epoch == target_epoch


def reconciled(
    position: Position,
    *,
    target_epoch: int,
    target: Partitions,
    taken: Container[Partition],
    owned: Partitions | None,
) -> Position:
    """The next position, or the same if it cannot change. `owned`: the partitions that the member reports; None:
    unknown."""
    match position.state:
        case MemberState.STABLE if position.epoch == target_epoch:
            return position
        case MemberState.UNREVOKED_PARTITIONS:
            if _owns_any(owned, position.revoking):
                return position
            epoch = position.epoch + 1
        case MemberState.UNKNOWN:
            epoch = target_epoch
        case _:
            epoch = position.epoch
    return _next(position, epoch, target_epoch=target_epoch, target=target, taken=taken, owned=owned)


def _next(
    position: Position,
    epoch: int,
    *,
    target_epoch: int,
    target: Partitions,
    taken: Container[Partition],
    owned: Partitions | None,
) -> Position:
    kept = position.assigned & target
    revoking = position.assigned - target
    if revoking and _owns_any(owned, revoking):
        state = MemberState.UNREVOKED_PARTITIONS
        return position.moved(epoch=epoch, state=state, assigned=kept, revoking=revoking)
    wanted = target - kept
    free = frozenset(each for each in wanted if each not in taken)
    state = MemberState.STABLE if len(free) == len(wanted) else MemberState.UNRELEASED_PARTITIONS
    return position.moved(epoch=target_epoch, state=state, assigned=kept | free, revoking=frozenset())


def _owns_any(owned: Partitions | None, given_up: Partitions) -> bool:
    """Whether the member still owns some of them; it does if it reported nothing."""
    return owned is None or not owned.isdisjoint(given_up)
