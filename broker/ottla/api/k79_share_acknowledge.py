"""ShareAcknowledge: what became of records that were fetched. Answered when it is committed. v1 (KIP-932)."""

from collections.abc import Awaitable
from typing import Any

from ottla.api.authorizing import require, topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import ShareAcknowledgeRequest
from ottla.api.share_groups import check_shares_served
from ottla.api.share_results import (
    LeaderHints,
    Outcome,
    PendingAcknowledgements,
    acknowledge,
    acknowledgements_in,
    by_topic,
)
from ottla.errors import Code, KafkaError
from ottla.security.core.access import Operation, Resource
from ottla.share.core.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession, TopicIdPartition
from ottla.share.host import ShareHost


@api(key=79, versions=(1, 1))
def share_acknowledge(
    request: ShareAcknowledgeRequest, call: Call, shares: ShareHost, leader_hints: LeaderHints
) -> Awaitable[Answer]:
    check_shares_served(leader_hints.image)
    require(call, Operation.READ, Resource.GROUP, request.group_id or "")
    readable = topic_access(call, Operation.READ, leader_hints.image)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(Code.invalid_share_session_epoch, "a share session is opened by a fetch")
    session = shares.sessions.proceed(request.group_id or "", request.member_id or "", request.share_session_epoch)
    pending = acknowledge(session, acknowledgements_in(request.topics), shares, readable)
    is_last = request.share_session_epoch == FINAL_EPOCH
    return _answer(session, pending, call, shares, leader_hints, is_last=is_last)


async def _answer(
    session: ShareSession,
    pending: PendingAcknowledgements,
    call: Call,
    shares: ShareHost,
    leader_hints: LeaderHints,
    *,
    is_last: bool,
) -> Answer:
    outcomes = await pending.outcomes()
    if is_last:
        shares.close_session(session)
    parts = {wanted: _part(wanted, outcome, leader_hints) for wanted, outcome in outcomes.items()}
    return call.reply(
        responses=by_topic(parts), node_endpoints=leader_hints.endpoints(parts.values(), call.client.listener)
    )


def _part(wanted: TopicIdPartition, outcome: Outcome, leader_hints: LeaderHints) -> dict[str, Any]:
    return {
        "partition_index": wanted[1],
        "error_code": Code.none if outcome is None else outcome.code,
        "error_message": None if outcome is None else outcome.message,
        "current_leader": leader_hints.leader_of(wanted, outcome),
    }
