"""Conditions from findings. Pure."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ottla_operator.resources.model import Condition

__all__ = ["Finding", "conditions", "timestamp"]


class Finding(msgspec.Struct, frozen=True):
    """`holds` is None when it is not known."""

    type: str
    holds: bool | None
    reason: str
    message: str = ""


def conditions(
    findings: Sequence[Finding], before: Sequence[Condition], *, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """A condition keeps the time of its last change of status; one that nobody found is dropped."""
    known = {condition.type: condition for condition in before}
    made = []
    for finding in findings:
        status = {True: "True", False: "False", None: "Unknown"}[finding.holds]
        old = known.get(finding.type)
        made.append(
            Condition(
                type=finding.type,
                status=status,
                reason=finding.reason,
                message=finding.message,
                last_transition_time=old.last_transition_time if old and old.status == status else timestamp(now),
                observed_generation=generation,
            )
        )
    return tuple(made)


def timestamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
