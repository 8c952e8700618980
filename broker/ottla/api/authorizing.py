"""May this client do that? What handlers ask, with Kafka's codes; who was refused is written into the audit trail."""

from ottla.api.call import Call
from ottla.errors import Code, KafkaError
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.security.core.audit import AuditEvent

__all__ = ["REFUSALS", "may", "may_any", "refusal", "require", "require_cluster", "sees"]

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


def _deny(call: Call, operation: Operation, resource: Resource, name: str) -> None:
    client = call.client
    client.trail.record(
        AuditEvent(
            principal=client.principal,
            host=client.host,
            listener=client.listener,
            action=call.api.name,
            resource=f"{NAMES[resource]}:{name}",
            verdict="denied",
            reason=operation.name,
        )
    )
