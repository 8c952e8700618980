"""ACLs in words for people at a terminal: `topic:orders`, `topic:ord*`, `READ`, and whole sentences."""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.api.authorizing import SUPPORTED
from ottla.errors import Refusal
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.security.core.principals import USER

__all__ = [
    "KINDS",
    "Pattern",
    "check_host",
    "check_possible",
    "operations_of",
    "pattern_of",
    "principal_of",
    "sentence",
    "shown_pattern",
]

KINDS = {
    "topic": Resource.TOPIC,
    "group": Resource.GROUP,
    "cluster": Resource.CLUSTER,
    "transactional-id": Resource.TRANSACTIONAL_ID,
}
WORDS = {resource: word for word, resource in KINDS.items()}
# What an ACL of each kind can be about; others would mean nothing.
OPERATIONS = [each for each in Operation if Operation.ALL <= each <= Operation.IDEMPOTENT_WRITE]
POSSIBLE = {**SUPPORTED, Resource.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.WRITE)}
EXPECTED = "topic:NAME, group:NAME, transactional-id:NAME or cluster; NAME* for all that begin with it, * for all"


class Pattern(NamedTuple):
    resource: Resource
    type: PatternType
    name: str


def pattern_of(text: str) -> Pattern:
    """`topic:orders` is that one, `topic:ord*` all that begin with it, `topic:*` all."""
    word, colon, name = text.partition(":")
    resource = KINDS.get(word.lower())
    if resource is Resource.CLUSTER and name in ("", CLUSTER_NAME):
        return Pattern(resource, PatternType.LITERAL, CLUSTER_NAME)
    if resource is None or resource is Resource.CLUSTER or not (colon and name):
        raise Refusal(f"{text}: expected {EXPECTED}")
    if name != "*" and name.endswith("*"):
        return Pattern(resource, PatternType.PREFIXED, name[:-1])
    return Pattern(resource, PatternType.LITERAL, name)


def shown_pattern(binding: AclBinding) -> str:
    """As `pattern_of` reads it."""
    word = WORDS.get(Resource(binding.resource_type), str(binding.resource_type))
    if binding.resource_type == Resource.CLUSTER:
        return word
    return f"{word}:{binding.resource_name}{'*' if binding.pattern_type == PatternType.PREFIXED else ''}"


def principal_of(text: str) -> str:
    """A name alone is a user's."""
    return text if ":" in text else f"{USER}:{text}"


def operations_of(text: str) -> Sequence[Operation]:
    """`read,describe-configs`"""
    known = {each.name: each for each in OPERATIONS}
    words = [part.strip().upper().replace("-", "_") for part in text.split(",")]
    for word in words:
        if word not in known:
            raise Refusal(f"{word.lower() or text}: no such operation; there are {_listed(known.values())}")
    return [known[word] for word in dict.fromkeys(words)]


def check_possible(operation: Operation, resource: Resource) -> None:
    """An ACL that nothing would ever ask for is a mistake."""
    if operation is not Operation.ALL and operation not in POSSIBLE[resource]:
        possible = _listed(sorted(POSSIBLE[resource]))
        raise Refusal(f"{_word(operation)}: not of a {WORDS[resource]}; possible are all, {possible}")


def check_host(text: str) -> None:
    """Hosts are compared as addresses: a name would never fit."""
    if text == "*":
        return
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise Refusal(f"--host {text}: an address is expected, such as 10.0.0.7, or * for everywhere") from None


def _listed(operations: Iterable[Operation]) -> str:
    return ", ".join(map(_word, operations))


def _word(operation: Operation) -> str:
    return operation.name.lower().replace("_", "-")


def sentence(binding: AclBinding) -> str:
    """`User:ann may READ topic:orders` or `… must not …`."""
    verb = "may" if binding.permission == Permission.ALLOW else "must not"
    where = "" if binding.host == "*" else f" from {binding.host}"
    return f"{binding.principal} {verb} {Operation(binding.operation).name} {shown_pattern(binding)}{where}"
