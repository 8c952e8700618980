"""The time of day as Kubernetes writes it. Plans get texts and seconds: they know no clock."""

from datetime import UTC, datetime

__all__ = ["now", "seconds_since"]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_since(moment: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
