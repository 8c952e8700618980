"""What Kubernetes refused, as an obstacle: whose rule it was, and what to do. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla_operator.plans.obstacle import Obstacle

__all__ = ["creation_obstacle", "refusal"]

Object = Mapping[str, Any]

# What the sentence contains → a word for programs, and the next step. The first that fits.
QUOTA, ADMISSION = ("exceeded quota", "failed quota", "unknown for quota"), ("denied the request", "denied request")
RIGHTS = tuple(f"cannot {verb} resource" for verb in ("get", "list", "create", "patch", "update", "delete"))
KNOWN = (
    (QUOTA, "QuotaExceeded", "raise the ResourceQuota of the namespace, or ask for less"),
    (("violates PodSecurity",), "PodSecurity", "lower the Pod Security level that the namespace enforces"),
    (("is being terminated",), "NamespaceTerminating", "the namespace is being deleted"),
    (ADMISSION, "AdmissionDenied", "change the spec or the admission policy"),
    (RIGHTS, "Forbidden", "give the operator's service account this permission; the chart does"),
)
OTHER = ("Refused", "correct the spec, or what refuses it")
TEXT_LENGTH_MAX = 2000


def refusal(text: str) -> Obstacle:
    """`text`: the sentence of the API server, which names the object."""
    fitting = ((reason, step) for words, reason, step in KNOWN if any(word in text for word in words))
    reason, step = next(fitting, OTHER)
    return Obstacle(reason, f"Kubernetes refuses: {text[:TEXT_LENGTH_MAX]}; {step}")


def creation_obstacle(events: Sequence[Object]) -> Obstacle | None:
    """`events`: those about one StatefulSet. Its pods and claims are made by Kubernetes, so a refusal is only there."""
    newest = max(events, key=_moment, default=None)
    if newest is None or newest.get("reason") != "FailedCreate":
        return None
    return refusal(str(newest.get("message", "")))


def _moment(event: Object) -> str:
    """RFC 3339 with the same zone, so that texts compare as times do."""
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")
