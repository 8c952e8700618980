"""ListTransactions: the transactional ids that this broker coordinates, filtered.

v1 by age (KIP-994) · v2 by a pattern of ids (KIP-1152).
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code, KafkaError
from ottla.txn.states import State
from ottla.txn.transaction import Transaction

STATES = {state.label: state for state in State}


@api(key=66, versions=(0, 2))
async def list_transactions(request: Any, call: Call) -> Answer:
    shards = call.node.transactions.shards
    if any(shard.loading for shard in shards):
        return call.reply(error_code=Code.coordinator_load_in_progress, unknown_state_filters=[], transaction_states=[])
    now_ms = call.node.system.clock.wall_ms()
    found = [one for shard in shards for one in shard.transactions.values() if _is_wanted(one, request, now_ms)]
    if pattern := getattr(request, "transactional_id_pattern", None):
        try:
            matching = await call.node.groups.regexes.select(pattern, [one.id for one in found])
        except KafkaError as error:
            return call.reply(error_code=error.code, unknown_state_filters=[], transaction_states=[])
        found = [one for one in found if one.id in matching]
    unknown = [name for name in request.state_filters if name not in STATES]
    states = [
        {"transactional_id": one.id, "producer_id": one.producer_id, "transaction_state": one.state.label}
        for one in found
    ]
    return call.reply(error_code=Code.none, unknown_state_filters=unknown, transaction_states=states)


def _is_wanted(one: Transaction, request: Any, now_ms: int) -> bool:
    duration_ms = getattr(request, "duration_filter", -1)
    if duration_ms >= 0 and (one.started_ms < 0 or now_ms - one.started_ms <= duration_ms):
        return False
    states = {STATES.get(name) for name in request.state_filters}
    if request.state_filters and one.state not in states:
        return False
    return not request.producer_id_filters or one.producer_id in request.producer_id_filters
