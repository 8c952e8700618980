"""What each API asks of its clients, in one table, as Kafka's KafkaApis and ControllerApis do.

`Whole`: checked here, before the handler is called. `Parts`: the handler asks, since a refusal concerns one line of the
answer, or something is left out. `FREE`: nobody is asked. An API that is missing here stops a node from starting.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.api.authorizing import require
from ottla.api.call import Call
from ottla.api.change_trail import recorded
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource

__all__ = ["AUTHORIZATION", "FREE", "Free", "Parts", "Rule", "Whole", "guarded"]


class Free(NamedTuple):
    pass


class Need(NamedTuple):
    operation: Operation
    resource: Resource
    field: str = ""
    """Of the request, with the name; empty for the cluster."""


class Whole(NamedTuple):
    """The request is refused as a whole, by the error of its answer."""

    needs: tuple[Need, ...]


class Parts(NamedTuple):
    """For people: what is asked, and what becomes of the rest."""

    asks: str


Rule = Free | Whole | Parts

FREE = Free()
READ, WRITE, ALTER, DESCRIBE = Operation.READ, Operation.WRITE, Operation.ALTER, Operation.DESCRIBE


def cluster(operation: Operation) -> Whole:
    return Whole((Need(operation, Resource.CLUSTER),))


def group(operation: Operation) -> Whole:
    return Whole((Need(operation, Resource.GROUP, "group_id"),))


TRANSACTION = Need(WRITE, Resource.TRANSACTIONAL_ID, "transactional_id")

AUTHORIZATION: dict[int, Rule] = {
    0: Parts("WRITE of the transactional id, else every partition is refused; WRITE of each topic"),
    1: Parts("READ of each topic"),
    2: Parts("DESCRIBE of each topic"),
    3: Parts("DESCRIBE of each topic, others are not listed; CREATE of what is made, or of the cluster"),
    8: Parts("READ of the group, else every partition is refused; READ of each topic"),
    9: Parts("DESCRIBE of each group; DESCRIBE of each topic, others are not listed"),
    10: Parts("DESCRIBE of each group and transactional id; CLUSTER_ACTION for share-partitions"),
    11: group(READ),
    12: group(READ),
    13: group(READ),
    14: group(READ),
    15: Parts("DESCRIBE of each group"),
    16: Parts("DESCRIBE of the cluster, or of each group: others are not listed"),
    17: FREE,
    18: FREE,
    19: Parts("CREATE of the cluster, or of each topic; DESCRIBE_CONFIGS of each topic whose settings are answered"),
    20: Parts("DELETE of the cluster, or of each topic; DESCRIBE of those that are named back"),
    21: Parts("DELETE of each topic"),
    22: Parts("WRITE of the transactional id; otherwise IDEMPOTENT_WRITE of the cluster, or WRITE of any topic"),
    23: Parts("CLUSTER_ACTION, or DESCRIBE of each topic"),
    24: Parts("WRITE of the transactional id and of each topic; from v4 CLUSTER_ACTION"),
    25: Whole((TRANSACTION, Need(READ, Resource.GROUP, "group_id"))),
    26: Whole((TRANSACTION,)),
    27: Parts("ALTER of the cluster, or CLUSTER_ACTION, else every marker is refused"),
    28: Parts("WRITE of the transactional id and READ of the group, else all is refused; READ of each topic"),
    29: Parts("DESCRIBE of the cluster"),
    30: Parts("ALTER of the cluster, else every line is refused"),
    31: Parts("ALTER of the cluster, else every line is refused"),
    32: Parts("DESCRIBE_CONFIGS of each topic and group, of the cluster for all else"),
    33: Parts("ALTER_CONFIGS of each topic and group, of the cluster for all else"),
    35: Parts("DESCRIBE of the cluster, else nothing is listed"),
    36: FREE,
    37: Parts("ALTER of each topic"),
    38: Parts("one's own; CREATE_TOKENS of another user"),
    39: Parts("one's own, or as its renewer"),
    40: Parts("one's own, or as its renewer"),
    41: Parts("one's own; DESCRIBE of each token, or DESCRIBE_TOKENS of its owner: others are not listed"),
    42: Parts("DELETE of each group"),
    43: Parts("ALTER of the cluster, else every partition is refused"),
    44: Parts("ALTER_CONFIGS of each topic and group, of the cluster for all else"),
    45: Parts("ALTER of the cluster, else every partition is refused"),
    46: cluster(DESCRIBE),
    47: Parts("DELETE of the group; READ of each topic"),
    48: cluster(Operation.DESCRIBE_CONFIGS),
    49: Parts("ALTER_CONFIGS of the cluster, else every line is refused"),
    50: Parts("DESCRIBE of the cluster, else every line is refused"),
    51: Parts("ALTER of the cluster, else every line is refused"),
    55: cluster(DESCRIBE),
    57: cluster(ALTER),
    60: Parts("DESCRIBE of the cluster for the operations that it allows"),
    61: Parts("READ of each topic"),
    64: cluster(ALTER),
    65: Parts("DESCRIBE of each transactional id; DESCRIBE of each topic, others are not listed"),
    66: Parts("DESCRIBE of each transactional id: others are not listed"),
    68: Parts("READ of the group; DESCRIBE of all topics that are named"),
    69: Parts("DESCRIBE of each group and of all its topics"),
    74: cluster(Operation.DESCRIBE_CONFIGS),
    75: Parts("DESCRIBE of each topic, others are not listed"),
    76: Parts("READ of the group; DESCRIBE of all topics that are named"),
    77: Parts("DESCRIBE of each group and of all its topics"),
    78: Parts("READ of the group; READ of each topic"),
    79: Parts("READ of the group; READ of each topic"),
    80: cluster(ALTER),
    81: cluster(ALTER),
    90: Parts("DESCRIBE of each group; DESCRIBE of each topic, others are not listed"),
    91: Parts("READ of the group; READ of each topic"),
    92: Parts("DELETE of the group; READ of each topic"),
}
"""By the keys of the APIs."""

Handle = Callable[[Any, Call], Any]


def guarded(key: int, handle: Handle) -> Handle:
    """LookupError when nobody said what this API needs."""
    rule = AUTHORIZATION.get(key)
    if rule is None:
        raise LookupError(f"API {key} is not in the table of authorization")
    handle = recorded(key, handle)
    return _checking(rule.needs, handle) if isinstance(rule, Whole) else handle


def _checking(needs: tuple[Need, ...], handle: Handle) -> Handle:
    def check(request: Any, call: Call) -> Any:
        if not call.client.is_unrestricted:
            for operation, resource, field in needs:
                require(call, operation, resource, getattr(request, field) if field else CLUSTER_NAME)
        return handle(request, call)

    return check
