"""The state of one share group (KIP-932), as its records in the log define it. Pure; only `apply` changes it."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ottla.group.consumer.state import GroupState
from ottla.group.share.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    STATES,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    StatePartitions,
)

__all__ = ["ShareGroupState"]


class ShareGroupState(GroupState):
    """`owners` is not meaningful here: several members may have the same partition."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.states = StatePartitions()

    def _name_now(self) -> str:
        """Members get their target at once, so there is no Reconciling."""
        return "Stable" if self.members else "Empty"

    @property
    def subscribed(self) -> frozenset[str]:
        return frozenset[str]().union(*(member.subscription.topics for member in self.members.values()))

    def _states(self, _: str, value: StatePartitions | None) -> None:
        self.states = value or StatePartitions()

    APPLY: ClassVar[Mapping[int, Callable[[Any, str, Any], None]]] = {
        MEMBER: GroupState._member,
        GROUP_EPOCH: GroupState._group_epoch,
        TARGET_EPOCH: GroupState._target_epoch,
        TARGET_ASSIGNMENT: GroupState._target_assignment,
        CURRENT_ASSIGNMENT: GroupState._current_assignment,
        STATES: _states,
    }
