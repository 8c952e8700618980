"""May this client do that? What handlers ask, with Kafka's codes; who was refused is written into the audit trail."""

import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.api.call import Call
from ottla.api.slices import paced
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import Outcome
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import ResourceType
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.security.core.audit import AuditEvent

__all__ = [
    "NOT_ASKED",
    "REFUSALS",
    "TopicAccess",
    "may",
    "may_any",
    "may_cluster",
    "operations",
    "operations_if",
    "permitted",
    "refusal",
    "require",
    "require_cluster",
    "require_configs",
    "require_topics",
    "resource_text",
    "sees",
    "topic_access",
]

REFUSALS = {
    Resource.TOPIC: Code.topic_authorization_failed,
    Resource.GROUP: Code.group_authorization_failed,
    Resource.CLUSTER: Code.cluster_authorization_failed,
    Resource.TRANSACTIONAL_ID: Code.transactional_id_authorization_failed,
    Resource.DELEGATION_TOKEN: Code.delegation_token_authorization_failed,
    Resource.USER: Code.delegation_token_authorization_failed,
}
NAMES = {
    Resource.TOPIC: "Topic",
    Resource.GROUP: "Group",
    Resource.CLUSTER: "Cluster",
    Resource.TRANSACTIONAL_ID: "TransactionalId",
    Resource.DELEGATION_TOKEN: "DelegationToken",
    Resource.USER: "User",
}

SUPPORTED = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
}
Item = TypeVar("Item")
Value = TypeVar("Value")

TOLD_MAX = 100  # refusals of one request in the audit trail
NOT_ASKED = -(2**31)
"""What an answer has instead of the bits of operations."""


def may(call: Call, operation: Operation, resource: Resource, name: str) -> bool:
    """Somebody asked for this very thing: a refusal is written down."""
    client = call.client
    if client.is_unrestricted or client.access.may(operation, resource, name):
        return True
    _deny(call, operation, resource, name)
    return False


def sees(call: Call, operation: Operation, resource: Resource, name: str) -> bool:
    """Of things that nobody named, only those are listed: no refusal, and no line about it."""
    client = call.client
    return client.is_unrestricted or client.access.may(operation, resource, name)


def may_any(call: Call, operation: Operation, resource: Resource) -> bool:
    client = call.client
    return client.is_unrestricted or client.access.may_any(operation, resource)


def refusal(operation: Operation, resource: Resource, name: str) -> KafkaError:
    text = f"Not authorized: this needs {operation.name} on {NAMES[resource]} {name:.300}."
    return KafkaError(REFUSALS[resource], text)


def require(call: Call, operation: Operation, resource: Resource, name: str) -> None:
    """KafkaError with the code for this type of resource."""
    if not may(call, operation, resource, name):
        raise refusal(operation, resource, name)


def require_cluster(call: Call, operation: Operation) -> None:
    require(call, operation, Resource.CLUSTER, CLUSTER_NAME)


def may_cluster(call: Call, operation: Operation) -> bool:
    return may(call, operation, Resource.CLUSTER, CLUSTER_NAME)


def operations(call: Call, resource: Resource, name: str) -> int:
    """Which operations this client may do, as bits. Nobody is refused anything by that."""
    allowed = (each for each in SUPPORTED[resource] if sees(call, each, resource, name))
    return sum(1 << each for each in allowed)


def operations_if(asked: object, call: Call, resource: Resource, name: str) -> int:
    return operations(call, resource, name) if asked else NOT_ASKED


def require_configs(call: Call, operation: Operation, resource_type: int, name: str) -> None:
    """Settings of topics and groups are theirs; all others are the cluster's."""
    if resource_type == ResourceType.TOPIC:
        require(call, operation, Resource.TOPIC, name)
    elif resource_type == ResourceType.GROUP:
        require(call, operation, Resource.GROUP, name)
    else:
        require_cluster(call, operation)


class TopicAccess:
    """Of one request to topics, by name or id. Each is asked about once, so that a refusal is one line of the trail."""

    __slots__ = ("_call", "_image", "_known", "_operation")

    def __init__(self, call: Call, operation: Operation, image: Image | None) -> None:
        self._call = call
        self._operation = operation
        self._image = image
        self._known: dict[str | bytes, KafkaError | None] = {}

    def refused(self, topic: str | bytes) -> KafkaError | None:
        """None where it may. An id that this image does not have is refused as unknown: whoever does the work may have
        a newer image, in which it is a topic that nobody was asked about."""
        known = self._known
        if topic not in known:
            name = topic if isinstance(topic, str) else self._name(topic)
            known[topic] = KafkaError(Code.unknown_topic_id) if name is None else self._refusal(name, topic)
        return known[topic]

    def require(self, topic: str | bytes) -> None:
        if (error := self.refused(topic)) is not None:
            raise error

    def _name(self, topic_id: bytes) -> str | None:
        assert self._image is not None
        topic = self._image.topics_by_id.get(uuid.UUID(bytes=topic_id))
        return None if topic is None else topic.name

    def _refusal(self, name: str, asked: str | bytes) -> KafkaError | None:
        """It says no more of the topic than the client did."""
        if may(self._call, self._operation, Resource.TOPIC, name):
            return None
        shown = asked if isinstance(asked, str) else str(uuid.UUID(bytes=asked))
        return refusal(self._operation, Resource.TOPIC, shown)


def topic_access(call: Call, operation: Operation, image: Image | None = None) -> TopicAccess | None:
    """None where nothing is refused. The image finds topics by their ids."""
    return None if call.client.is_unrestricted else TopicAccess(call, operation, image)


def require_topics(call: Call, operation: Operation, names: Iterable[str]) -> None:
    """KafkaError as soon as one of them is refused."""
    if not call.client.is_unrestricted:
        for name in names:
            require(call, operation, Resource.TOPIC, name)


async def permitted(
    items: Iterable[Item],
    call: Call,
    *,
    denied: Callable[[Item], KafkaError | None],
    check: Callable[[Item], None],
    value: Callable[[Item], Value],
) -> tuple[list[Item], list[Outcome[Value]]]:
    """What of a request may go to the controller, and why the rest may not: equal values are answered once.

    Everything is authorized, also what `check` finds wrong: so the audit trail has every refusal. What is wrong comes
    first in the answer, as in Kafka.
    """
    allowed: list[Item] = []
    refused: dict[Value, Outcome[Value]] = {}
    async for item in paced(items, call):
        error = denied(item)
        try:
            check(item)
        except KafkaError as wrong:
            error = wrong
        if error is None:
            allowed.append(item)
        else:
            named = value(item)
            refused[named] = Outcome(named, error.code, error.message)
    return allowed, list(refused.values())


def resource_text(resource: Resource, name: str) -> str:
    """As Kafka writes it: `Topic:orders`."""
    return f"{NAMES[resource]}:{name}"


def _deny(call: Call, operation: Operation, resource: Resource, name: str) -> None:
    """A request that names very many things is told of so many times only."""
    if call.refused is None:
        call.refused = set()
    told, named = len(call.refused), resource_text(resource, name)
    call.refused.add(named)
    if told > TOLD_MAX:
        return
    client = call.client
    client.trail.record(
        AuditEvent(
            principal=client.principal,
            host=client.host,
            listener=client.listener,
            action=call.api.name,
            resource=named if told < TOLD_MAX else "… and more of the same request",
            verdict="denied",
            reason=operation.name,
        )
    )
