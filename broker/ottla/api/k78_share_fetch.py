"""ShareFetch: records for a member of a share group, each locked for it; acknowledgements of earlier ones come along.

v1 sessions, acknowledgements, how many records and in what portions (KIP-932).
"""

from collections.abc import Awaitable
from typing import Any

from ottla.api.authorizing import require, topic_access
from ottla.api.call import Answer, Call
from ottla.api.pacing import sliced
from ottla.api.registry import api
from ottla.api.requests import ShareFetchRequest
from ottla.api.share_groups import check_shares_served
from ottla.api.share_results import (
    LeaderHints,
    Outcome,
    PendingAcknowledgements,
    acknowledge,
    acknowledgements_in,
    by_topic,
    close_with_connection,
)
from ottla.config import BrokerConfig
from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.security.core.access import Operation, Resource
from ottla.share.core.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession, TopicIdPartition
from ottla.share.fetching import Delivered, Limits, ShareFetching
from ottla.share.host import ShareHost

NOTHING = Delivered()
SIZE_BYTES_MAX = 8 << 20  # of one answer, which is made in memory: what is locked must be there when it is sent


@api(key=78, versions=(1, 1))
def share_fetch(
    request: ShareFetchRequest,
    call: Call,
    shares: ShareHost,
    leader_hints: LeaderHints,
    config: BrokerConfig,
    clock: Clock,
) -> Awaitable[Answer]:
    """The session and the acknowledgements are worked on before the next request of the connection is handled."""
    check_shares_served(leader_hints.image)
    require(call, Operation.READ, Resource.GROUP, request.group_id or "")
    readable = topic_access(call, Operation.READ, leader_hints.image)
    acknowledgements = {wanted: batches for wanted, batches in acknowledgements_in(request.topics).items() if batches}
    if acknowledgements and request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(Code.invalid_request, "the first request of a share session has nothing to acknowledge")
    session = _session(request, call, shares)
    fetching = ShareFetching(
        shares,
        session,
        _limits(request, call, config),
        clock=clock,
        pace=call.long_work.pace,
        refused=None if readable is None else readable.refused,
    )
    pending = acknowledge(session, acknowledgements, shares, readable)
    return _fetch(request, session, pending, fetching, call, shares, leader_hints)


def _session(request: ShareFetchRequest, call: Call, shares: ShareHost) -> ShareSession:
    group_id, member_id = request.group_id or "", request.member_id or ""
    wanted = list(acknowledgements_in(request.topics))
    if request.share_session_epoch == INITIAL_EPOCH:
        session = shares.open_session(group_id, member_id, wanted)
        close_with_connection(session, call, shares)
        return session
    session = shares.sessions.proceed(group_id, member_id, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        forgotten = [
            (topic.topic_id or bytes(16), index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        shares.sessions.change(session, wanted, forgotten)
    return session


async def _fetch(
    request: ShareFetchRequest,
    session: ShareSession,
    pending: PendingAcknowledgements,
    fetching: ShareFetching,
    call: Call,
    shares: ShareHost,
    leader_hints: LeaderHints,
) -> Answer:
    if request.share_session_epoch == FINAL_EPOCH:
        outcomes = await pending.outcomes()
        shares.close_session(session)
        return await _answer({}, outcomes, call, shares.settings_of(session.group_id).lock_ms, leader_hints)
    delivered = await fetching.run()
    if request.share_session_epoch == INITIAL_EPOCH:
        delivered = dict.fromkeys(session.wanted, NOTHING) | delivered
    _charge(delivered, call)
    outcomes = await pending.outcomes()
    return await _answer(delivered, outcomes, call, shares.settings_of(session.group_id).lock_ms, leader_hints)


def _limits(request: ShareFetchRequest, call: Call, config: BrokerConfig) -> Limits:
    """Not more at once than a quota could bear; otherwise it could never be answered."""
    size: int = min(request.max_bytes, config["fetch.max.bytes"], SIZE_BYTES_MAX)
    meter = call.allowance.fetch if call.allowance is not None else None
    if meter is not None:
        size = min(size, max(meter.window_bytes, 1))
    return Limits(
        wait_s=max(request.max_wait, 0) / 1000,
        size_bytes_min=min(request.min_bytes, size),
        size_bytes_max=size,
        records_max=request.max_records,
        batch_size=request.batch_size,
    )


def _charge(delivered: dict[TopicIdPartition, Delivered], call: Call) -> None:
    """What is locked for the client must go out; it pauses afterwards."""
    meter = call.allowance.fetch if call.allowance is not None else None
    if meter is not None:
        call.throttle_ms = meter.charge(sum(len(each.records) for each in delivered.values()))


async def _answer(
    delivered: dict[TopicIdPartition, Delivered],
    outcomes: dict[TopicIdPartition, Outcome],
    call: Call,
    lock_ms: int,
    leader_hints: LeaderHints,
) -> Answer:
    keys = dict.fromkeys((*delivered, *outcomes))
    parts = {
        key: _part(key, delivered.get(key, NOTHING), outcomes.get(key), leader_hints)
        async for key in sliced(keys, call.long_work.pace)
    }
    return call.reply(
        acquisition_lock_timeout=lock_ms,
        responses=by_topic(parts),
        node_endpoints=leader_hints.endpoints(parts.values(), call.client.listener),
    )


def _part(
    wanted: TopicIdPartition, delivered: Delivered, acknowledged: Outcome, leader_hints: LeaderHints
) -> dict[str, Any]:
    error = delivered.error
    return {
        "partition_index": wanted[1],
        "error_code": Code.none if error is None else error.code,
        "error_message": None if error is None else error.message,
        "acknowledge_error_code": Code.none if acknowledged is None else acknowledged.code,
        "acknowledge_error_message": None if acknowledged is None else acknowledged.message,
        "current_leader": leader_hints.leader_of(wanted, error or acknowledged),
        "records": delivered.records,
        "acquired_records": [
            {"first_offset": span.first, "last_offset": span.last, "delivery_count": span.deliveries}
            for span in delivered.acquired
        ],
    }
