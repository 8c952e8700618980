"""The API server's audit log: who wrote what. Our own cluster and kind keep one (audit-policy.yaml)."""

import json
from datetime import UTC, datetime
from typing import Any

from scripts.local_kubernetes import in_docker
from scripts.local_kubernetes.access import Access
from scripts.local_kubernetes.commands import run
from scripts.local_kubernetes.places import audit_log

OPERATOR = "system:serviceaccount:ottla-system:"
# Renewals of leadership, by Kubernetes' leases or by Kopf's peering.
LEADERSHIP = ("leases", "kopfpeerings", "clusterkopfpeerings")


def readable(access: Access) -> bool:
    return access.kind != "existing"


def now(access: Access) -> float:
    """The moment of the newest entry or of now, whichever is later: entries are compared by the server's clock."""
    return max([datetime.now(UTC).timestamp(), *map(_moment, _entries(access)[-1:])])


def writes_of_operator(access: Access, *, since: float) -> list[str]:
    return [_shown(entry) for entry in _by_operator(access) if _moment(entry) > since]


def last_write_of_operator(access: Access) -> float:
    """When, in seconds since 1970; 0 when never."""
    return max(map(_moment, _by_operator(access)), default=0.0)


def anybody_wrote(access: Access, *, since: float) -> bool:
    return any(_moment(entry) > since for entry in _entries(access))


def _by_operator(access: Access) -> list[Any]:
    return [
        entry
        for entry in _entries(access)
        if entry["user"]["username"].startswith(OPERATOR)
        and entry.get("objectRef", {}).get("resource") not in LEADERSHIP
    ]


def _entries(access: Access) -> list[Any]:
    if access.kind == "kind":
        text = run("docker", "exec", f"{in_docker.NAME}-control-plane", "cat", "/var/log/audit/audit.log")
    else:
        text = audit_log().read_text()
    return [json.loads(line) for line in text.splitlines()]


def _moment(entry: Any) -> float:
    return datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()


def _shown(entry: Any) -> str:
    thing = entry.get("objectRef", {})
    where = "/".join(filter(None, (thing.get("resource"), thing.get("name"), thing.get("subresource"))))
    return f"{entry['requestReceivedTimestamp']} {entry['verb']} {where}"
