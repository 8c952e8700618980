"""Changes of administrators in the audit trail: one line per request that changes something, with what it names.

The line is written when the request was answered. What was refused has lines of its own; `allowed` says that the client
may ask for the change, not that the controller found nothing wrong with it.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ottla.api.authorizing import resource_text
from ottla.api.call import Answer, Call
from ottla.errors import KafkaError
from ottla.metadata.model.acls import PatternType, Permission
from ottla.metadata.model.state import ResourceType
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.security.core.audit import AuditEvent, NoTrail

__all__ = ["CHANGES", "recorded"]

Handle = Callable[[Any, Call], Any]
CLUSTER = resource_text(Resource.CLUSTER, CLUSTER_NAME)
NAMED_MAX = 100


def _topic(name: str | None, topic_id: bytes | None = None) -> str:
    return resource_text(Resource.TOPIC, name if name is not None else (topic_id or b"").hex())


def _group(name: str) -> str:
    return resource_text(Resource.GROUP, name)


def _topics(request: Any) -> Iterable[str]:
    return (_topic(each.name) for each in request.topics)


def _deleted(request: Any) -> Iterable[str]:
    topics = getattr(request, "topics", ()) or ()
    return [*map(_topic, getattr(request, "topic_names", ()) or ()), *(_topic(t.name, t.topic_id) for t in topics)]


def _created_acls(request: Any) -> Iterable[str]:
    for each in request.creations:
        what = _known(Resource, each.resource_type), _known(PatternType, each.resource_pattern_type)
        how = _known(Permission, each.permission_type), _known(Operation, each.operation)
        yield f"Acl:{' '.join(what)}:{each.resource_name} {' '.join(how)} {each.principal} from {each.host}"


def _deleted_acls(request: Any) -> Iterable[str]:
    for each in request.filters:
        kind = _known(Resource, each.resource_type_filter)
        yield f"AclFilter:{kind}:{each.resource_name_filter or '*'} {each.principal_filter or '*'}"


def _known(numbers: Any, number: int) -> str:
    return str(numbers(number).name) if number in list(numbers) else str(number)


def _configs(request: Any) -> Iterable[str]:
    kinds = {ResourceType.TOPIC: "Topic", ResourceType.GROUP: "Group", ResourceType.BROKER: f"{CLUSTER} Broker"}
    for each in request.resources:
        settings = ",".join(config.name for config in each.configs)  # never their values
        yield f"{kinds.get(each.resource_type, each.resource_type)}:{each.resource_name} ({settings})"


def _users(request: Any) -> Iterable[str]:
    return (resource_text(Resource.USER, each.name) for each in (*request.deletions, *request.upsertions))


def _quotas(request: Any) -> Iterable[str]:
    for entry in request.entries:
        yield "Quota:" + ",".join(f"{one.entity_type}={one.entity_name}" for one in entry.entity)


def _partitions(request: Any) -> Iterable[str]:
    return (_topic(each.topic) for each in request.topic_partitions or ())


def _of_group(request: Any) -> Iterable[str]:
    names = (getattr(each, "name", None) or getattr(each, "topic_name", "") for each in request.topics)
    return (f"{_group(request.group_id)} {_topic(name)}" for name in names)


CHANGES: dict[int, Callable[[Any], Iterable[str]]] = {
    19: _topics,
    20: _deleted,
    21: _topics,
    30: _created_acls,
    31: _deleted_acls,
    33: _configs,
    37: _topics,
    38: lambda request: [f"DelegationToken of {getattr(request, 'owner_principal_name', None) or 'oneself'}"],
    39: lambda request: ["DelegationToken"],  # its id is known by a secret only
    40: lambda request: ["DelegationToken"],
    42: lambda request: map(_group, request.groups_names),
    43: _partitions,
    44: _configs,
    45: _topics,
    47: _of_group,
    49: _quotas,
    51: _users,
    57: lambda request: (f"Feature:{each.feature}={each.max_version_level}" for each in request.feature_updates),
    64: lambda request: [f"Broker:{request.broker_id}"],
    80: lambda request: [f"Voter:{request.voter_id}"],
    81: lambda request: [f"Voter:{request.voter_id}"],
    91: _of_group,
    92: _of_group,
}
"""By the keys of the APIs: what a request means to change. Secrets and values of settings are not named."""


def recorded(key: int, handle: Handle) -> Handle:
    named = CHANGES.get(key)
    if named is None:
        return handle

    def changing(request: Any, call: Call) -> Any:
        if isinstance(call.client.trail, NoTrail):
            return handle(request, call)
        return _answer(handle, request, call, named)

    return changing


async def _answer(handle: Handle, request: Any, call: Call, named: Callable[[Any], Iterable[str]]) -> Answer:
    try:
        result = handle(request, call)
        answer: Answer = await result if inspect.isawaitable(result) else result
    except KafkaError as error:
        if not call.refused:
            _record(call, "failed", _first(named(request)), error.code.name)
        raise
    if left := _left(_first(named(request)), call.refused or set()):
        _record(call, "allowed", left, "")
    return answer


def _left(names: list[str], refused: set[str]) -> list[str]:
    """Without those of which any part was refused. A topic that was named by its id was refused by its name."""
    is_of_cluster = any(name.startswith(CLUSTER) for name in names)
    if (CLUSTER in refused and not is_of_cluster) or len(refused) >= len(names):
        return []
    return [name for name in names if refused.isdisjoint(name.split(" "))]


def _first(names: Iterable[str]) -> list[str]:
    found: dict[str, None] = {}
    for name in names:
        if len(found) >= NAMED_MAX:
            found["…"] = None
            break
        found[name] = None
    return list(found)


def _record(call: Call, verdict: Any, names: list[str], reason: str) -> None:
    client = call.client
    client.trail.record(
        AuditEvent(
            principal=client.principal,
            host=client.host,
            listener=client.listener,
            action=call.api.name,
            resource=", ".join(names),
            verdict=verdict,
            reason=reason,
        )
    )
