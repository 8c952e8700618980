"""ListTransactions: the transactional ids that this broker coordinates, filtered.

v1 by age (KIP-994) · v2 by a pattern of ids (KIP-1152).
"""

from collections.abc import Callable
from typing import Any

from ottla.api.authorizing import sees
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import ListTransactionsRequest
from ottla.api.slices import encoded, paced
from ottla.errors import Code, KafkaError
from ottla.group.coordinator import GroupCoordinator
from ottla.ports import Clock
from ottla.security.core.access import Operation, Resource
from ottla.txn.coordinator import TransactionCoordinator
from ottla.txn.core.states import State
from ottla.txn.core.transaction import Transaction

STATES = {state.label: state for state in State}


@api(key=66, versions=(0, 2))
async def list_transactions(
    request: ListTransactionsRequest,
    call: Call,
    transactions: TransactionCoordinator,
    groups: GroupCoordinator,
    clock: Clock,
) -> Answer:
    shards = transactions.shards
    if any(shard.loading for shard in shards):
        return call.reply(error_code=Code.coordinator_load_in_progress, unknown_state_filters=[], transaction_states=[])
    is_wanted = _filter(request, clock.wall_ms())
    known = [one for shard in shards for one in shard.transactions.values()]
    found = [one async for one in paced(known, call) if is_wanted(one) and _is_seen(one, call)]
    if pattern := getattr(request, "transactional_id_pattern", None):
        try:
            matching = await groups.regexes.select(pattern, [one.id for one in found])
        except KafkaError as error:
            return call.reply(error_code=error.code, unknown_state_filters=[], transaction_states=[])
        found = [one for one in found if one.id in matching]
    unknown = [name for name in request.state_filters if name not in STATES]
    states = await encoded(call, ("transaction_states",), (_line(one) async for one in paced(found, call)))
    return call.reply(error_code=Code.none, unknown_state_filters=unknown, transaction_states=states)


def _is_seen(one: Transaction, call: Call) -> bool:
    return sees(call, Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, one.id)


def _line(one: Transaction) -> dict[str, Any]:
    return {"transactional_id": one.id, "producer_id": one.producer_id, "transaction_state": one.state.label}


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    duration_ms = getattr(request, "duration_filter", -1)
    states = {STATES.get(name) for name in request.state_filters}
    producer_ids = set(request.producer_id_filters)

    def is_wanted(one: Transaction) -> bool:
        if duration_ms >= 0 and (one.started_ms < 0 or now_ms - one.started_ms <= duration_ms):
            return False
        if states and one.state not in states:
            return False
        return not producer_ids or one.producer_id in producer_ids

    return is_wanted
