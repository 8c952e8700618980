"""Decisions about client quotas, and matching them for DescribeClientQuotas. Pure."""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AlterClientQuotas, Context, Decision, Outcome, QuotaChange
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, client_quota_record
from ottla.metadata.model.state import QuotaEntity
from ottla.wire.text_limits import NAME_BYTES_MAX, is_too_long

__all__ = ["CLIENT_ID", "IP", "MATCH_ANY", "MATCH_DEFAULT", "MATCH_EXACT", "USER", "QuotaFilter", "alter"]

USER, CLIENT_ID, IP = "user", "client-id", "ip"
WHOLE_NUMBER_MAX = {
    "producer_byte_rate": 2**63 - 1,
    "consumer_byte_rate": 2**63 - 1,
    "connection_creation_rate": 2**31 - 1,
}
CLIENT_KEYS = {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
IP_KEYS = {"connection_creation_rate"}
FRACTION_MAX = 1e-6
# Kafka's numbers.
MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY = 0, 1, 2


def alter(image: Image, command: AlterClientQuotas, context: Context) -> Decision[list[Outcome[QuotaEntity]]]:
    records: list[Record] = []
    outcomes: dict[QuotaEntity, Outcome[QuotaEntity]] = {}
    for change in command.changes:
        entity = tuple(sorted(change.entity, key=lambda each: each[0]))
        try:
            if entity in outcomes:
                raise KafkaError(Code.invalid_request, f"Ignoring duplicate entity {_shown(entity)}")
            _check_entity(entity)
            if entity not in image.client_quotas:  # one of an earlier version can be removed
                _check_name_sizes(entity)
            _check_changes(entity, change)
        except KafkaError as error:
            outcomes[entity] = Outcome(change.entity, error.code, error.message)
        else:
            outcomes[entity] = Outcome(change.entity)
            records += _records(image, entity, change)
    return Decision(list(outcomes.values()), () if command.validate_only else records)


def _records(image: Image, entity: QuotaEntity, change: QuotaChange) -> Iterator[Record]:
    """Records of the values that change."""
    present = image.client_quotas.get(entity, {})
    for key, value in change.changes:
        if present.get(key) != value:
            yield client_quota_record(entity, key=key, value=value)


def _check_entity(entity: QuotaEntity) -> None:
    if not entity:
        raise KafkaError(Code.invalid_request, "Invalid empty client quota entity")
    kinds = [kind for kind, _ in entity]
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(Code.invalid_request, f"Unhandled client quota entity type: {kind}")
        if kinds.count(kind) > 1:
            raise KafkaError(Code.invalid_request, f"Invalid client quota entity, duplicate entity entry {kind}")
        if name == "":
            raise KafkaError(Code.invalid_request, f"Empty {kind} not supported")
    if IP in kinds:
        _check_ip(entity)


def _check_name_sizes(entity: QuotaEntity) -> None:
    for kind, name in entity:
        if is_too_long(name, bytes_max=NAME_BYTES_MAX):
            raise KafkaError(Code.invalid_request, f"A {kind} has at most {NAME_BYTES_MAX} bytes")


def _check_ip(entity: QuotaEntity) -> None:
    if len(entity) > 1:
        message = "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        raise KafkaError(Code.invalid_request, message)
    name = entity[0][1]
    try:
        ipaddress.ip_address(name or "0.0.0.0")
    except ValueError:
        raise KafkaError(Code.invalid_request, f"{name} is not a valid IP or resolvable host.") from None


def _check_changes(entity: QuotaEntity, change: QuotaChange) -> None:
    keys = IP_KEYS if entity[0][0] == IP else CLIENT_KEYS
    seen: set[str] = set()
    for key, value in change.changes:
        if key in seen:
            message = f"Duplicate quota key {key} not updating quota for this entity {_shown(entity)}"
            raise KafkaError(Code.invalid_request, message)
        seen.add(key)
        if value is not None:
            _check_value(key, value, keys)


def _check_value(key: str, value: float, keys: set[str]) -> None:
    if key not in keys:
        raise KafkaError(Code.invalid_request, f"Invalid configuration key {key}")
    if not value > 0:
        raise KafkaError(Code.invalid_request, f"Quota {key} must be greater than 0")
    if key in WHOLE_NUMBER_MAX:
        if value > WHOLE_NUMBER_MAX[key]:
            raise KafkaError(Code.invalid_request, f"Proposed value for {key} is too large.")
        if abs(value - round(value)) > FRACTION_MAX:
            raise KafkaError(Code.invalid_request, f"{key} cannot be a fractional value.")
        if round(value) < 1:
            raise KafkaError(Code.invalid_request, f"Quota {key} must be at least 1")


def _shown(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind}={'<default>' if name is None else name}" for kind, name in entity)


class QuotaFilter:
    """Entities that match every component (type, match type, name); `strict`: and have no other types."""

    def __init__(self, components: Sequence[tuple[str, int, str | None]], *, strict: bool) -> None:
        """Raises KafkaError."""
        _check_components(components)
        self._components = components
        self._strict = strict

    def candidates(self, quotas: Iterable[QuotaEntity]) -> Iterable[QuotaEntity]:
        """Those that `matches` has to judge: one where the filter names it whole."""
        named = self._strict and all(how != MATCH_ANY for _, how, _ in self._components)
        return [tuple(sorted((kind, name) for kind, _, name in self._components))] if named else quotas

    def matches(self, entity: QuotaEntity) -> bool:
        if self._strict and len(entity) != len(self._components):
            return False
        names = dict(entity)
        return all(_fits(names, *component) for component in self._components)


def _check_components(components: Sequence[tuple[str, int, str | None]]) -> None:
    kinds = [kind for kind, _, _ in components]
    for kind, how, name in components:
        if not kind:
            raise KafkaError(Code.invalid_request, "Invalid empty entity type.")
        if kinds.count(kind) > 1:
            raise KafkaError(Code.invalid_request, f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(Code.unsupported_version, f"Unsupported entity type {kind}")
        if how not in (MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY):
            raise KafkaError(Code.invalid_request, f"Unknown match type {how}")
        if (how == MATCH_EXACT) != (name is not None):
            raise KafkaError(Code.invalid_request, f"Match type {how} and match name {name!r} do not fit together.")


def _fits(entity: Mapping[str, str | None], kind: str, how: int, name: str | None) -> bool:
    if kind not in entity:
        return False
    return how == MATCH_ANY or entity[kind] == name
