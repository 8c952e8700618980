"""FindCoordinator: which broker keeps a group, a transactional id or a share-partition. Their topics are made when the
first one asks.

v1 key type · v3 flexible · v4 several keys at once (KIP-699) · v6 share-partitions (KIP-932), once share
groups are on; Kafka makes their topic before that too.
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.cluster_view import brokers_on
from ottla.api.registry import api
from ottla.api.requests import FindCoordinatorRequest
from ottla.api.slices import paced
from ottla.coordination.coordinator import Coordinator
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.features import SHARE_VERSION
from ottla.share.core.keys import is_key_text
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

GROUP, TRANSACTION, SHARE = 0, 1, 2
SHARES_SINCE_VERSION = 6
NO_ERROR = "NONE"  # what Kafka answers to one key; to several it answers none


@api(key=10, versions=(0, 6))
async def find_coordinator(request: FindCoordinatorRequest, call: Call) -> Answer:
    key_type = request.key_type
    if call.version < 4:
        found = await _coordinator(request.key, key_type, call)
        return call.reply(**{**found, "error_message": found["error_message"] or NO_ERROR})
    lines = [
        {"key": key, **await _coordinator(key, key_type, call)} async for key in paced(request.coordinator_keys, call)
    ]
    return call.reply(coordinators=lines)


async def _coordinator(key: str, key_type: int, call: Call) -> dict[str, Any]:
    coordinators = _coordinators(key_type, call)
    if coordinators is None:
        return _nobody(Code.invalid_request, f"no coordinators of type {key_type} here")
    if is_too_long(key):
        return _nobody(Code.invalid_request, f"a key has at most {TEXT_BYTES_MAX} bytes")
    if key_type == SHARE and not is_key_text(key):
        return _nobody(Code.invalid_request, f"{key!r} is not group:topic id:partition")
    try:
        leader = await coordinators.leader_of(key)
    except KafkaError as error:
        return _nobody(Code.coordinator_not_available, f"the coordinators' topic cannot be made: {error}")
    found = next((b for b in brokers_on(call.node.image, call.listener) if b.id == leader), None)
    if found is None:
        return _nobody(Code.coordinator_not_available, "the coordinator's partition has no leader")
    return {"node_id": found.id, "host": found.host, "port": found.port, "error_code": Code.none, "error_message": ""}


def _coordinators(key_type: int, call: Call) -> Coordinator[Any] | None:
    node = call.node
    if key_type == SHARE:
        is_served = call.version >= SHARES_SINCE_VERSION and node.image.features.get(SHARE_VERSION, 0) >= 1
        return node.share_states if is_served else None
    others: dict[int, Coordinator[Any]] = {GROUP: node.groups, TRANSACTION: node.transactions}
    return others.get(key_type)


def _nobody(code: Code, message: str) -> dict[str, Any]:
    return {"node_id": -1, "host": "", "port": -1, "error_code": code, "error_message": message}
