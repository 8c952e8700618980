"""Decisions about access control lists, and which of them a filter means. Pure."""

import uuid
from collections.abc import Iterable, Iterator, Mapping

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AclFilter, Context, CreateAcls, Decision, DeleteAcls, Outcome
from ottla.metadata.decisions.features import security_records
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, acl_record, remove_acl_record
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = ["create", "delete", "fits", "matching"]

CLUSTER, CLUSTER_NAME = 4, "kafka-cluster"
ANY = 1
ANY_NAME = "*"
RESOURCE_TYPES = range(2, 8)
OPERATIONS = range(2, 16)
NAMES = {0: "UNKNOWN", 1: "ANY"}
RECORDS_MAX = 10_000  # of one request, as in Kafka
COMPARED_MAX = 200_000  # bindings with filters, by one request: a tenth of a second


def create(image: Image, command: CreateAcls, context: Context) -> Decision[list[Outcome[None]]]:
    """One that exists already is as good as made."""
    outcomes: list[Outcome[None]] = []
    made: dict[uuid.UUID, AclBinding] = {}
    for binding in command.bindings:
        try:
            check(binding)
        except KafkaError as error:
            outcomes.append(Outcome(None, error.code, error.message))
            continue
        outcomes.append(Outcome(None))
        if (acl_id := binding.id) not in image.acls:
            made[acl_id] = binding
    if not made:
        return Decision(outcomes)
    _check_room(len(image.acls) + len(made), len(made), context)
    first = security_records(image, context)
    return Decision(outcomes, [*first, *(acl_record(acl_id, binding) for acl_id, binding in made.items())])


def _check_room(in_fleet: int, new: int, context: Context) -> None:
    if new > RECORDS_MAX:
        raise KafkaError(Code.policy_violation, f"One request makes at most {RECORDS_MAX} ACLs; split it")
    if in_fleet > (most := context.limits.acls_in_fleet_max):
        raise KafkaError(Code.policy_violation, f"This fleet has room for {most} ACLs; use prefixes and wildcards")


def check(binding: AclBinding) -> None:
    """KafkaError when nobody could be meant by it."""
    if binding.resource_type not in RESOURCE_TYPES:
        raise _invalid("resourceType", binding.resource_type)
    if binding.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        name = PatternType(binding.pattern_type).name if binding.pattern_type in list(PatternType) else "UNKNOWN"
        raise KafkaError(Code.invalid_request, f"Invalid patternType {name}")
    if binding.operation not in OPERATIONS:
        raise _invalid("operation", binding.operation)
    if binding.permission not in (Permission.DENY, Permission.ALLOW):
        raise _invalid("permissionType", binding.permission)
    _check_texts(binding)


def _invalid(what: str, number: int) -> KafkaError:
    return KafkaError(Code.invalid_request, f"Invalid {what} {NAMES.get(number, 'UNKNOWN')}")


def _check_texts(binding: AclBinding) -> None:
    if binding.resource_type == CLUSTER and binding.resource_name != CLUSTER_NAME:
        raise KafkaError(Code.invalid_request, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not binding.resource_name:
        raise KafkaError(Code.invalid_request, "Invalid empty resource name")
    if ":" not in binding.principal:
        raise KafkaError(
            Code.invalid_request,
            f"Could not parse principal from `{binding.principal:.100}` (no colon is present separating the principal "
            "type from the principal name)",
        )
    for what, text in (("name", binding.resource_name), ("principal", binding.principal), ("host", binding.host)):
        if is_too_long(text):
            raise KafkaError(Code.invalid_request, f"The {what} of an ACL has at most {TEXT_BYTES_MAX} bytes")


def delete(image: Image, command: DeleteAcls, context: Context) -> Decision[list[Outcome[list[AclBinding]]]]:
    """Each filter answers what it found; what two filters find is removed once."""
    open_filters = sum(_sole(each) is None for each in command.filters)
    if open_filters > 1 and open_filters * len(image.acls) > COMPARED_MAX:
        raise KafkaError(
            Code.policy_violation,
            f"{open_filters} filters that may mean several ACLs each are too many for {len(image.acls)} ACLs at once; "
            "split the request",
        )
    removed: dict[uuid.UUID, AclBinding] = {}
    outcomes: list[Outcome[list[AclBinding]]] = []
    for acl_filter in command.filters:
        try:
            check_filter(acl_filter)
        except KafkaError as error:
            outcomes.append(Outcome([], error.code, error.message))
            continue
        found = dict(_found(image.acls, acl_filter))
        outcomes.append(Outcome(list(found.values())))
        removed |= found
    if len(removed) > RECORDS_MAX:
        raise KafkaError(Code.policy_violation, f"Cannot remove more than {RECORDS_MAX} acls in a single operation.")
    return Decision(outcomes, list(_removals(removed)))


def _removals(removed: Iterable[uuid.UUID]) -> Iterator[Record]:
    return map(remove_acl_record, removed)


def check_filter(acl_filter: AclFilter) -> None:
    resource_known = acl_filter.resource_type == ANY or acl_filter.resource_type in RESOURCE_TYPES
    if not resource_known or acl_filter.pattern_type not in list(PatternType)[1:]:
        raise KafkaError(Code.invalid_request, "Unknown patternFilter.")
    operation_known = acl_filter.operation == ANY or acl_filter.operation in OPERATIONS
    if not operation_known or acl_filter.permission not in list(Permission)[1:]:
        raise KafkaError(Code.invalid_request, "Unknown entryFilter.")


def _found(acls: Mapping[uuid.UUID, AclBinding], acl_filter: AclFilter) -> Iterator[tuple[uuid.UUID, AclBinding]]:
    sole = _sole(acl_filter)
    if sole is None:
        yield from ((acl_id, each) for acl_id, each in acls.items() if fits(acl_filter, each))
    elif (acl_id := sole.id) in acls:
        yield acl_id, sole


def _sole(acl_filter: AclFilter) -> AclBinding | None:
    """The only binding that the filter can mean, if it leaves nothing open."""
    name, principal, host = acl_filter.resource_name, acl_filter.principal, acl_filter.host
    kind, pattern, operation, permission = (
        acl_filter.resource_type,
        acl_filter.pattern_type,
        acl_filter.operation,
        acl_filter.permission,
    )
    if name is None or principal is None or host is None:
        return None
    if ANY in (kind, operation, permission) or pattern in (PatternType.ANY, PatternType.MATCH):
        return None
    return AclBinding(kind, pattern, name, principal, host, operation, permission)


def matching(acls: Mapping[uuid.UUID, AclBinding], acl_filter: AclFilter) -> Iterator[AclBinding]:
    return (binding for _, binding in _found(acls, acl_filter))


def fits(acl_filter: AclFilter, binding: AclBinding) -> bool:
    return (
        acl_filter.resource_type in (ANY, binding.resource_type)
        and _pattern_fits(acl_filter, binding)
        and acl_filter.principal in (None, binding.principal)
        and acl_filter.host in (None, binding.host)
        and acl_filter.operation in (ANY, binding.operation)
        and acl_filter.permission in (ANY, binding.permission)
    )


def _pattern_fits(acl_filter: AclFilter, binding: AclBinding) -> bool:
    """MATCH: whatever would be asked about a resource of this name; ANY: whatever is written with this name."""
    name, pattern = acl_filter.resource_name, acl_filter.pattern_type
    if pattern not in (PatternType.ANY, PatternType.MATCH, binding.pattern_type):
        return False
    if name is None or name == binding.resource_name:
        return True
    if pattern != PatternType.MATCH:
        return False
    if binding.pattern_type == PatternType.PREFIXED:
        return name.startswith(binding.resource_name)
    return binding.resource_name == ANY_NAME
