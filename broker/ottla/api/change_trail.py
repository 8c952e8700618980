"""Changes of administrators in the audit trail: what a request that changes something names, in one line or several.

They are written when the request was answered, or when its connection ends before. What was refused has lines of its
own; `allowed` says that the client may ask for the change, not that the controller found nothing wrong with it.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ottla.api.authorizing import resource_text
from ottla.api.call import Answer, Call
from ottla.errors import KafkaError
from ottla.metadata.model.acls import PatternType, Permission
from ottla.metadata.model.state import ResourceType
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.security.core.audit import AuditEvent, NoTrail, resource_lines

__all__ = ["CHANGES", "recorded"]

Handle = Callable[[Any, Call], Any]
CLUSTER = resource_text(Resource.CLUSTER, CLUSTER_NAME)
OF_CLUSTER = frozenset({CLUSTER})
UNANSWERED = "its connection ended before the answer"


class Change(NamedTuple):
    """`resources`: when one of them was refused, so was this. `is_named`: its request names it as a refusal does."""

    text: str
    resources: frozenset[str] = OF_CLUSTER
    is_named: bool = True


def _of(resource: Resource, name: str) -> Change:
    text = resource_text(resource, name)
    return Change(text, frozenset({text, CLUSTER}))


def _topic(name: str | None, topic_id: bytes | None = None) -> Change:
    if name is not None:
        return _of(Resource.TOPIC, name)
    return Change(resource_text(Resource.TOPIC, (topic_id or b"").hex()), is_named=False)


def _group(name: str) -> Change:
    return _of(Resource.GROUP, name)


def _token(of: str = "") -> Iterable[Change]:
    return [Change(f"DelegationToken{of}", is_named=False)]


def _topics(request: Any) -> Iterable[Change]:
    return (_topic(each.name) for each in request.topics)


def _deleted(request: Any) -> Iterable[Change]:
    topics = getattr(request, "topics", ()) or ()
    return [*map(_topic, getattr(request, "topic_names", ()) or ()), *(_topic(t.name, t.topic_id) for t in topics)]


def _markers(request: Any) -> Iterable[Change]:
    for marker in request.markers:
        how = "COMMIT" if marker.transaction_result else "ABORT"
        for topic in marker.topics:
            yield Change(f"{_topic(topic.name).text} ({how} of producer id {marker.producer_id})")


def _created_acls(request: Any) -> Iterable[Change]:
    for each in request.creations:
        what = _known(Resource, each.resource_type), _known(PatternType, each.resource_pattern_type)
        how = _known(Permission, each.permission_type), _known(Operation, each.operation)
        yield Change(f"Acl:{' '.join(what)}:{each.resource_name} {' '.join(how)} {each.principal} from {each.host}")


def _deleted_acls(request: Any) -> Iterable[Change]:
    for each in request.filters:
        kind = _known(Resource, each.resource_type_filter)
        yield Change(f"AclFilter:{kind}:{each.resource_name_filter or '*'} {each.principal_filter or '*'}")


def _known(numbers: Any, number: int) -> str:
    return str(numbers(number).name) if number in list(numbers) else str(number)


def _configs(request: Any) -> Iterable[Change]:
    for each in request.resources:
        kind, name = each.resource_type, each.resource_name
        settings = ",".join(config.name for config in each.configs)  # never their values
        if kind in OWN_SETTINGS:
            own = resource_text(OWN_SETTINGS[kind], name)
            yield Change(f"{own} ({settings})", frozenset({own}))
        else:
            yield Change(f"{f'{CLUSTER} Broker' if kind == ResourceType.BROKER else kind}:{name} ({settings})")


OWN_SETTINGS = {ResourceType.TOPIC: Resource.TOPIC, ResourceType.GROUP: Resource.GROUP}


def _users(request: Any) -> Iterable[Change]:
    return (_of(Resource.USER, each.name) for each in (*request.deletions, *request.upsertions))


def _quotas(request: Any) -> Iterable[Change]:
    for entry in request.entries:
        yield Change("Quota:" + ",".join(f"{one.entity_type}={one.entity_name}" for one in entry.entity))


def _partitions(request: Any) -> Iterable[Change]:
    return (_topic(each.topic) for each in request.topic_partitions or ())


def _of_group(request: Any) -> Iterable[Change]:
    group = _group(request.group_id)
    for each in request.topics:
        topic = _topic(getattr(each, "name", None) or getattr(each, "topic_name", ""))
        yield Change(f"{group.text} {topic.text}", group.resources | topic.resources)


CHANGES: dict[int, Callable[[Any], Iterable[Change]]] = {
    19: _topics,
    20: _deleted,
    21: _topics,
    27: _markers,
    30: _created_acls,
    31: _deleted_acls,
    33: _configs,
    37: _topics,
    38: lambda request: _token(f" of {getattr(request, 'owner_principal_name', None) or 'oneself'}"),
    39: lambda request: _token(),  # its id is known by a secret only
    40: lambda request: _token(),
    42: lambda request: map(_group, request.groups_names),
    43: _partitions,
    44: _configs,
    45: _topics,
    47: _of_group,
    49: _quotas,
    51: _users,
    57: lambda request: (
        Change(f"Feature:{each.feature}={each.max_version_level}") for each in request.feature_updates
    ),
    64: lambda request: [Change(f"Broker:{request.broker_id}")],
    80: lambda request: [Change(f"Voter:{request.voter_id}")],
    81: lambda request: [Change(f"Voter:{request.voter_id}")],
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


async def _answer(handle: Handle, request: Any, call: Call, named: Callable[[Any], Iterable[Change]]) -> Answer:
    try:
        result = handle(request, call)
        answer: Answer = await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError:  # whoever sends and hangs up is written down, too: it may be done
        _record(call, "allowed", named(request), UNANSWERED)
        raise
    except Exception as error:
        _record(call, "failed", named(request), _reason(error))
        raise
    _record(call, "allowed", named(request), "")
    return answer


def _reason(error: Exception) -> str:
    return error.code.name if isinstance(error, KafkaError) else type(error).__name__


def _left(changes: Iterable[Change], refused: set[str]) -> Iterable[Change]:
    """Without those of which any part was refused. What its request does not name, such as a topic by its id, is left
    out when there are as many refusals that fit nothing else."""
    known = list(dict.fromkeys(changes))
    left = [each for each in known if refused.isdisjoint(each.resources)]
    others = refused.difference(*(each.resources for each in known))
    if len(others) >= sum(not each.is_named for each in left):
        return [each for each in left if each.is_named]
    return left


def _record(call: Call, verdict: Any, changes: Iterable[Change], reason: str) -> None:
    client = call.client
    for line in resource_lines(each.text for each in (_left(changes, call.refused) if call.refused else changes)):
        client.trail.record(
            AuditEvent(
                principal=client.principal,
                host=client.host,
                listener=client.listener,
                action=call.api.name,
                resource=line,
                verdict=verdict,
                reason=reason,
            )
        )
