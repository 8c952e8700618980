"""The current time in Kubernetes' format. Plans get times as arguments."""

from datetime import UTC, datetime

__all__ = ["now", "seconds_since"]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_since(moment: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
