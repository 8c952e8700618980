"""ShareAcknowledge: what became of records that were fetched. Answered when it is committed. v1 (KIP-932)."""

from collections.abc import Awaitable
from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import ShareAcknowledgeRequest
from ottla.api.share_groups import check_shares_served
from ottla.api.share_results import Acknowledging, Outcome, acknowledge, by_topic, endpoints, given, leader_of
from ottla.errors import Code, KafkaError
from ottla.share.core.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession, Wanted


@api(key=79, versions=(1, 1))
def share_acknowledge(request: ShareAcknowledgeRequest, call: Call) -> Awaitable[Answer]:
    check_shares_served(call)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(Code.invalid_share_session_epoch, "a share session is opened by a fetch")
    session = call.node.shares.sessions.proceed(
        request.group_id or "", request.member_id or "", request.share_session_epoch
    )
    acknowledging = acknowledge(session, given(request.topics), call)
    return _answer(session, acknowledging, call, is_last=request.share_session_epoch == FINAL_EPOCH)


async def _answer(session: ShareSession, acknowledging: Acknowledging, call: Call, *, is_last: bool) -> Answer:
    outcomes = await acknowledging.outcomes()
    if is_last:
        call.node.shares.close_session(session)
    parts = {wanted: _part(wanted, outcome, call) for wanted, outcome in outcomes.items()}
    return call.reply(responses=by_topic(parts), node_endpoints=endpoints(parts.values(), call))


def _part(wanted: Wanted, outcome: Outcome, call: Call) -> dict[str, Any]:
    return {
        "partition_index": wanted[1],
        "error_code": Code.none if outcome is None else outcome.code,
        "error_message": None if outcome is None else outcome.message,
        "current_leader": leader_of(wanted, outcome, call),
    }
