"""FindCoordinator: which broker keeps a group, a transactional id or a share-partition. Their topics are made when the
first one asks.

v1 key type · v3 flexible · v4 several keys at once (KIP-699) · v6 share-partitions (KIP-932), once share
groups are on; Kafka makes their topic before that too.
"""

from functools import partial
from typing import Any

from ottla.api.authorizing import require, require_cluster
from ottla.api.call import Answer, Call
from ottla.api.cluster_view import brokers_on
from ottla.api.registry import api
from ottla.api.requests import FindCoordinatorRequest
from ottla.api.slices import paced
from ottla.coordination.coordinator import Coordinator
from ottla.errors import Code, KafkaError
from ottla.group.coordinator import GroupCoordinator
from ottla.metadata.decisions.features import SHARE_VERSION
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation, Resource
from ottla.share.coordinator import ShareCoordinator
from ottla.share.core.messages import is_key_text
from ottla.txn.coordinator import TransactionCoordinator
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

GROUP, TRANSACTION, SHARE = 0, 1, 2
SHARES_SINCE_VERSION = 6
NO_ERROR = "NONE"  # what Kafka answers to one key; to several it answers none


@api(key=10, versions=(0, 6))
async def find_coordinator(
    request: FindCoordinatorRequest,
    call: Call,
    feed: MetadataFeed,
    groups: GroupCoordinator,
    transactions: TransactionCoordinator,
    share_states: ShareCoordinator,
) -> Answer:
    known: dict[int, Coordinator[Any]] = {GROUP: groups, TRANSACTION: transactions}
    if call.version >= SHARES_SINCE_VERSION and feed.image.features.get(SHARE_VERSION, 0) >= 1:
        known[SHARE] = share_states
    ask = partial(_coordinator, request.key_type, known.get(request.key_type), feed, call)
    if call.version < 4:
        found = await ask(request.key)
        return call.reply(**{**found, "error_message": found["error_message"] or NO_ERROR})
    lines = [{"key": key, **await ask(key)} async for key in paced(request.coordinator_keys, call)]
    return call.reply(coordinators=lines)


async def _coordinator(
    key_type: int, coordinators: Coordinator[Any] | None, feed: MetadataFeed, call: Call, key: str
) -> dict[str, Any]:
    try:
        _authorize(key_type, key, call)
    except KafkaError as error:
        return _nobody(error.code, str(error))
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
    found = next((b for b in brokers_on(feed.image, call.client.listener) if b.id == leader), None)
    if found is None:
        return _nobody(Code.coordinator_not_available, "the coordinator's partition has no leader")
    return {"node_id": found.id, "host": found.host, "port": found.port, "error_code": Code.none, "error_message": ""}


def _authorize(key_type: int, key: str, call: Call) -> None:
    if key_type == GROUP:
        require(call, Operation.DESCRIBE, Resource.GROUP, key)
    elif key_type == TRANSACTION:
        require(call, Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, key)
    elif key_type == SHARE:
        require_cluster(call, Operation.CLUSTER_ACTION)


def _nobody(code: Code, message: str) -> dict[str, Any]:
    return {"node_id": -1, "host": "", "port": -1, "error_code": code, "error_message": message}
