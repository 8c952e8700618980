"""Conditions from findings. Pure."""

from collections.abc import Sequence

import msgspec

from ottla_operator.resources.model import Condition, Status

__all__ = ["Finding", "changed_condition", "conditions"]


class Finding(msgspec.Struct, frozen=True):
    """`holds` is None when it is not known."""

    type: str
    holds: bool | None
    reason: str
    message: str = ""


def conditions(
    findings: Sequence[Finding], before: Sequence[Condition], *, generation: int, now: str
) -> tuple[Condition, ...]:
    """A condition keeps the time of its last change of status; one without a finding is dropped. `now`: RFC 3339."""
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
                last_transition_time=old.last_transition_time if old and old.status == status else now,
                observed_generation=generation,
            )
        )
    return tuple(made)


def changed_condition(before: Status | None, now: Status, kind: str = "Ready") -> Condition | None:
    """The condition, when it is not what it was: worth an Event."""
    old = next((one for one in (before.conditions if before else ()) if one.type == kind), None)
    new = next((one for one in now.conditions if one.type == kind), None)
    if new is None or (old is not None and (old.status, old.reason) == (new.status, new.reason)):
        return None
    return new
