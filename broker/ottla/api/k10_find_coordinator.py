"""FindCoordinator: which broker keeps a group. The offsets topic is made when the first group asks.

v1 key type · v3 flexible · v4 several keys at once (KIP-699) · v6 share groups, which are not served.
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.cluster_view import brokers_on
from ottla.api.registry import api
from ottla.errors import Code, KafkaError

GROUP, TRANSACTION = 0, 1


@api(key=10, versions=(0, 6))
async def find_coordinator(request: Any, call: Call) -> Answer:
    key_type = request.key_type
    if call.version < 4:
        return call.reply(**await _coordinator(request.key, key_type, call))
    lines = [{"key": key, **await _coordinator(key, key_type, call)} for key in request.coordinator_keys]
    return call.reply(coordinators=lines)


async def _coordinator(key: str, key_type: int, call: Call) -> dict[str, Any]:
    if key_type == TRANSACTION:
        return _nobody(Code.coordinator_not_available, "transactions are not served by this broker")
    if key_type != GROUP:
        return _nobody(Code.invalid_request, f"no coordinators of type {key_type} here")
    try:
        leader = await call.node.groups.leader_of(key)
    except KafkaError as error:
        return _nobody(Code.coordinator_not_available, f"the offsets topic cannot be made: {error}")
    found = next((b for b in brokers_on(call.node.image, call.listener) if b.id == leader), None)
    if found is None:
        return _nobody(Code.coordinator_not_available, "the group's partition of the offsets topic has no leader")
    return {"node_id": found.id, "host": found.host, "port": found.port, "error_code": Code.none, "error_message": ""}


def _nobody(code: Code, message: str) -> dict[str, Any]:
    return {"node_id": -1, "host": "", "port": -1, "error_code": code, "error_message": message}
