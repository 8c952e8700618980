"""Changes of administrators in the audit trail: what a request that changes something names, in one line or several.

They are written when the request was answered. `allowed` says that the answer says so: something was changed. What was
not, has `failed` and the code; like denials, which have lines of their own, anybody can cause that as often as they
like. `unknown`: its connection ended, and so long afterwards there was no answer yet.
"""

import asyncio
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from ottla.api.authorizing import REFUSALS, resource_text
from ottla.api.call import Answer, Call
from ottla.api.change_outcomes import Lines, Outcomes
from ottla.errors import Code, KafkaError
from ottla.metadata.model.acls import PatternType, Permission
from ottla.metadata.model.state import ResourceType
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.security.core.audit import AuditEvent, NoTrail, Verdict, resource_lines

__all__ = ["ANSWERS", "CHANGES", "recorded"]

Handle = Callable[[Any, Call], Any]
CLUSTER = resource_text(Resource.CLUSTER, CLUSTER_NAME)
EVERYTHING = object()
"""The key of all that an answer names."""
NOTHING = "there was nothing to change"
UNANSWERED = "its connection ended before the answer"


FAILED_LINES_MAX = 10  # of one request, with one code

Key = Hashable


class Change(NamedTuple):
    """`key`: as which its answer names it."""

    text: str
    key: Key = None


def _of(resource: Resource, name: str) -> Change:
    return Change(resource_text(resource, name), name)


def _topic(name: str | None, topic_id: bytes | None = None) -> Change:
    return _of(Resource.TOPIC, name if name is not None else (topic_id or b"").hex())


def _group(name: str) -> Change:
    return _of(Resource.GROUP, name)


def _token(of: str = "") -> Iterable[Change]:
    return [Change(f"DelegationToken{of}")]


def _topics(request: Any) -> Iterable[Change]:
    return (_topic(each.name) for each in request.topics)


def _deleted(request: Any) -> Iterable[Change]:
    topics = getattr(request, "topics", ()) or ()
    return [*map(_topic, getattr(request, "topic_names", ()) or ()), *(_topic(t.name, t.topic_id) for t in topics)]


def _markers(request: Any) -> Iterable[Change]:
    for marker in request.markers:
        how = "COMMIT" if marker.transaction_result else "ABORT"
        for topic in marker.topics:
            text = f"{_topic(topic.name).text} ({how} of producer id {marker.producer_id})"
            yield Change(text, (marker.producer_id, topic.name))


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
            whose = resource_text(OWN_SETTINGS[kind], name)
        else:
            whose = f"{f'{CLUSTER} Broker' if kind == ResourceType.BROKER else kind}:{name}"
        yield Change(f"{whose} ({settings})", (kind, name))


OWN_SETTINGS = {ResourceType.TOPIC: Resource.TOPIC, ResourceType.GROUP: Resource.GROUP}


def _users(request: Any) -> Iterable[Change]:
    return (_of(Resource.USER, each.name) for each in (*request.deletions, *request.upsertions))


def _quotas(request: Any) -> Iterable[Change]:
    for entry in request.entries:
        entity = [(one.entity_type, one.entity_name) for one in entry.entity]
        yield Change("Quota:" + ",".join(f"{kind}={name}" for kind, name in entity), frozenset(entity))


def _partitions(request: Any) -> Iterable[Change]:
    if request.topic_partitions is None:
        return [Change("Topic:*", EVERYTHING)]
    return (_topic(each.topic) for each in request.topic_partitions)


def _of_group(request: Any) -> Iterable[Change]:
    group = _group(request.group_id)
    for each in request.topics:
        topic = _topic(getattr(each, "name", None) or getattr(each, "topic_name", ""))
        yield Change(f"{group.text} {topic.text}", topic.key)


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


def _named(*fields: str) -> Callable[[Mapping[str, Any]], Iterable[Key]]:
    return lambda line: [tuple(line[field] for field in fields) if len(fields) > 1 else line[fields[0]]]


def _deleted_topic(line: Mapping[str, Any]) -> Iterable[Key]:
    return [line["name"], line["topic_id"].hex]


def _quota(line: Mapping[str, Any]) -> Iterable[Key]:
    return [frozenset((one["entity_type"], one["entity_name"]) for one in line["entity"])]


ANSWERS = {
    19: Lines("topics", _named("name")),
    20: Lines("responses", _deleted_topic),
    21: Lines("topics", _named("name")),
    27: Lines("markers", _named("producer_id", "name"), inner="topics"),
    30: Lines("results"),
    31: Lines("filter_results", needs="matching_acls"),
    33: Lines("responses", _named("resource_type", "resource_name")),
    37: Lines("results", _named("name")),
    42: Lines("results", _named("group_id")),
    43: Lines("replica_election_results", _named("topic")),
    44: Lines("responses", _named("resource_type", "resource_name")),
    45: Lines("responses", _named("name")),
    47: Lines("topics", _named("name")),
    49: Lines("entries", _quota),
    51: Lines("results", _named("user")),
    91: Lines("responses", _named("topic_name")),
    92: Lines("responses", _named("topic_name")),
}
"""Where their answers tell what became of it; those of all others have one code."""

DONE_ALL_THE_SAME = {21: Code.request_timed_out}
"""The leader deletes at once, and then waits for its followers."""
PERHAPS_DONE = (Code.request_timed_out, Code.not_controller, Code.unknown_server_error)
"""The controller may have heard of it."""
DENIALS = frozenset(REFUSALS.values())


def recorded(key: int, handle: Handle) -> Handle:
    named = CHANGES.get(key)
    if named is None:
        return handle

    def changing(request: Any, call: Call) -> Any:
        if isinstance(call.client.trail, NoTrail) or getattr(request, "validate_only", False):
            return handle(request, call)
        call.outcomes = outcomes = Outcomes(ANSWERS.get(key))
        return _answer(handle, request, call, named, outcomes)

    return changing


async def _answer(
    handle: Handle, request: Any, call: Call, named: Callable[[Any], Iterable[Change]], outcomes: Outcomes
) -> Answer:
    try:
        result = handle(request, call)
        answer: Answer = await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError:
        _record(call, "unknown", named(request), UNANSWERED)
        raise
    except Exception as error:
        if not (call.refused and isinstance(error, KafkaError) and error.code in DENIALS):
            _record(call, "failed", named(request), _reason(error))
        raise
    _tell(call, outcomes, named(request))
    return answer


def _reason(error: Exception) -> str:
    return error.code.name if isinstance(error, KafkaError) else type(error).__name__


def _tell(call: Call, outcomes: Outcomes, changes: Iterable[Change]) -> None:
    """What was changed comes first, then what may have been; what was denied has lines of its own."""
    done, failed = list[Change](), dict[int | None, list[Change]]()
    for position, change in enumerate(changes):
        codes = outcomes.all if change.key is EVERYTHING else outcomes.of(change.key, position)
        if not codes.isdisjoint((Code.none, DONE_ALL_THE_SAME.get(call.api.key, Code.none))):
            done.append(change)
        elif not (call.refused and codes and codes <= DENIALS):
            failed.setdefault(min(codes - DENIALS or codes, key=_order, default=None), []).append(change)
    _record(call, "allowed", done, "")
    for code in sorted(failed, key=_order):
        _record(call, "failed", failed[code], NOTHING if code is None else Code(code).name)


def _order(code: int | None) -> tuple[bool, bool, int]:
    return code not in PERHAPS_DONE, code is None, code or 0


def _record(call: Call, verdict: Verdict, changes: Iterable[Change], reason: str) -> None:
    client = call.client
    lines_max = None if verdict == "allowed" else FAILED_LINES_MAX
    for line in resource_lines((each.text for each in changes), lines_max):
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
