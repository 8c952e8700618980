"""FindCoordinator: which broker keeps a group or a transactional id. Their topics are made when the first one asks.

v1 key type · v3 flexible · v4 several keys at once (KIP-699) · v6 share groups, which are not served.
"""

from typing import TYPE_CHECKING, Any

from ottla.api.call import Answer, Call
from ottla.api.cluster_view import brokers_on
from ottla.api.registry import api
from ottla.errors import Code, KafkaError

if TYPE_CHECKING:
    from ottla.group.coordinator import GroupCoordinator
    from ottla.txn.coordinator import TransactionCoordinator

GROUP, TRANSACTION = 0, 1
NO_TROUBLE = "NONE"  # as Kafka says it where one key is asked for; where there are several it says nothing


@api(key=10, versions=(0, 6))
async def find_coordinator(request: Any, call: Call) -> Answer:
    key_type = request.key_type
    if call.version < 4:
        found = await _coordinator(request.key, key_type, call)
        return call.reply(**{**found, "error_message": found["error_message"] or NO_TROUBLE})
    lines = [{"key": key, **await _coordinator(key, key_type, call)} for key in request.coordinator_keys]
    return call.reply(coordinators=lines)


async def _coordinator(key: str, key_type: int, call: Call) -> dict[str, Any]:
    if key_type not in (GROUP, TRANSACTION):
        return _nobody(Code.invalid_request, f"no coordinators of type {key_type} here")
    coordinators: GroupCoordinator | TransactionCoordinator
    coordinators = call.node.groups if key_type == GROUP else call.node.transactions
    try:
        leader = await coordinators.leader_of(key)
    except KafkaError as error:
        return _nobody(Code.coordinator_not_available, f"the coordinators' topic cannot be made: {error}")
    found = next((b for b in brokers_on(call.node.image, call.listener) if b.id == leader), None)
    if found is None:
        return _nobody(Code.coordinator_not_available, "the coordinator's partition has no leader")
    return {"node_id": found.id, "host": found.host, "port": found.port, "error_code": Code.none, "error_message": ""}


def _nobody(code: Code, message: str) -> dict[str, Any]:
    return {"node_id": -1, "host": "", "port": -1, "error_code": code, "error_message": message}
