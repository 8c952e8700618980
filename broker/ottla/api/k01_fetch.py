"""Fetch: whole batches as they lie on the disk, at once when there are enough, otherwise when there are or time is up.

v4 isolation level · v5 log start offset · v7 sessions (KIP-227) · v9 leader epochs (KIP-320) · v11 racks (KIP-392) ·
v12 flexible, diverging epoch (KIP-595) · v13 topic ids (KIP-516) · v15 replica state · v16 endpoints of current leaders
(KIP-951) · v17 replica directory (KIP-853) · v18 replica's high watermark (KIP-1166).
"""

from collections.abc import Awaitable
from functools import partial

from ottla.api.call import Answer, Call, Deferred
from ottla.api.fetch_plan import FetchPlans, Plan, Reading
from ottla.api.fetch_sessions import FINAL_EPOCH, FetchSessions, Session, Wanted
from ottla.api.fetching import DelayedFetch, DelayedLargeFetch
from ottla.api.pacing import Turn, sliced
from ottla.api.registry import api
from ottla.api.requests import FetchPartition, FetchRequest, FetchTopic
from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.system import Threads
from ottla.wire.fetch_response import Fetched, encode, encode_joined

PARTITIONS_AT_ONCE_MAX = 2_000  # 4 µs each

Topics = dict[str | bytes, list[Fetched]]


@api(key=1, versions=(4, 18), elements_max=None)
def fetch(
    request: FetchRequest,
    call: Call,
    fetch_plans: FetchPlans,
    fetch_sessions: FetchSessions,
    clock: Clock,
    threads: Threads,
) -> Answer | Awaitable[Answer | Deferred] | Deferred:
    if call.is_large:
        return _fetch_large(request, call, fetch_plans, fetch_sessions, clock, threads)
    wanted = [_wanted(topic, part, call) for topic in request.topics for part in topic.partitions]
    try:
        session = _session(request, wanted, call, fetch_sessions, clock)
    except KafkaError as error:
        return _no_session(error, call)
    plan = fetch_plans.plan(list(session.wanted.values()), request, call)
    if len(session.wanted) > PARTITIONS_AT_ONCE_MAX:
        return _fetch_in_slices(plan, session, request, call, threads)
    reading = plan.read()
    if reading.cold:
        return _read_cold(plan, session, call)
    if reading.is_final or reading.size_bytes >= request.min_bytes or request.max_wait <= 0 or not plan.wanted:
        return _answer(session, reading, call)
    return DelayedFetch(
        plan, lambda found: _answer(session, found, call), size_bytes_min=request.min_bytes, wait_ms=request.max_wait
    )


async def _fetch_large(
    request: FetchRequest,
    call: Call,
    fetch_plans: FetchPlans,
    fetch_sessions: FetchSessions,
    clock: Clock,
    threads: Threads,
) -> Answer | Deferred:
    named = ((topic, part) for topic in request.topics for part in topic.partitions)
    wanted = [_wanted(topic, part, call) async for topic, part in sliced(named, call.long_work.pace)]
    try:
        session = _session(request, wanted, call, fetch_sessions, clock)
    except KafkaError as error:
        return _no_session(error, call)
    plan = fetch_plans.plan(list(session.wanted.values()), request, call)
    return await _fetch_in_slices(plan, session, request, call, threads)


async def _fetch_in_slices(
    plan: Plan, session: Session, request: FetchRequest, call: Call, threads: Threads
) -> Answer | Deferred:
    """Of more partitions than one turn of the loop bears, named by this request or by those before it."""
    async with call.turn or Turn(call.long_work.lock):
        reading = await plan.read_in_slices()
        if reading.is_final or reading.size_bytes >= request.min_bytes or request.max_wait <= 0:
            return await _answer_in_slices(session, reading, call, threads)
    return DelayedLargeFetch(
        plan,
        reading,
        lambda found: _answer_in_slices(session, found, call, threads),
        lock=call.long_work.lock,
        size_bytes_min=request.min_bytes,
        wait_ms=request.max_wait,
    )


def _no_session(error: KafkaError, call: Call) -> Answer:
    return call.frame(encode(call.version, error_code=error.code, session_id=0, topics=()))


def _session(
    request: FetchRequest, wanted: list[Wanted], call: Call, fetch_sessions: FetchSessions, clock: Clock
) -> Session:
    return fetch_sessions.begin(
        session_id=request.session_id if call.version >= 7 else 0,
        epoch=request.session_epoch if call.version >= 7 else FINAL_EPOCH,
        wanted=wanted,
        forgotten=[
            (topic.topic_id or bytes(16) if _uses_ids(call) else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ],
        uses_ids=_uses_ids(call),
        now=clock.monotonic(),
    )


def _uses_ids(call: Call) -> bool:
    return call.version >= 13


def _wanted(topic: FetchTopic, part: FetchPartition, call: Call) -> Wanted:
    return Wanted(
        topic=topic.topic_id or bytes(16) if _uses_ids(call) else topic.topic,
        index=part.partition,
        offset=part.fetch_offset,
        size_bytes_max=part.partition_max_bytes,
        leader_epoch=part.current_leader_epoch,
        last_fetched_epoch=part.last_fetched_epoch,
    )


async def _read_cold(plan: Plan, session: Session, call: Call) -> Answer:
    return _answer(session, await plan.read_cold(), call)


def _answer(session: Session, reading: Reading, call: Call) -> Answer:
    """Everything in a full answer; in an incremental one only what is new to the client."""
    if throttled := _throttled(session, reading, call):
        return throttled
    topics: Topics = {}
    for wanted, fetched in reading.answers:
        _add(topics, session, wanted, fetched)
    return call.frame(encode(call.version, error_code=Code.none, session_id=session.id, topics=list(topics.items())))


async def _answer_in_slices(session: Session, reading: Reading, call: Call, threads: Threads) -> Answer:
    if throttled := _throttled(session, reading, call):
        return throttled
    topics: Topics = {}
    async for wanted, fetched in sliced(reading.answers, call.long_work.pace):
        _add(topics, session, wanted, fetched)
    made = partial(
        encode_joined, call.version, error_code=Code.none, session_id=session.id, topics=list(topics.items())
    )
    return call.frame(await threads.run(made))


def _throttled(session: Session, reading: Reading, call: Call) -> Answer:
    """As Kafka: what was read is left where it is, and asked for again when the time is over. None: not throttled."""
    if call.allowance is None or not (throttle_ms := _throttle_ms(reading, call)):
        return None
    session_id = session.id if session.incremental else 0
    body = encode(call.version, error_code=Code.none, session_id=session_id, topics=(), throttle_ms=throttle_ms)
    return call.frame(body)


def _add(topics: Topics, session: Session, wanted: Wanted, fetched: Fetched) -> None:
    if not session.incremental or _is_news(wanted, fetched):
        topics.setdefault(wanted.topic, []).append(fetched)
        _note_sent(session, wanted, fetched)


def _throttle_ms(reading: Reading, call: Call) -> int:
    meter = call.allowance.fetch if call.allowance is not None else None
    pause_ms = meter.charge(reading.size_bytes) if meter is not None else 0
    throttle_ms = call.settle(pause_ms)
    if throttle_ms and meter is not None:
        meter.take_back(reading.size_bytes)
    return throttle_ms


def _is_news(wanted: Wanted, fetched: Fetched) -> bool:
    return bool(
        len(fetched.records)
        or fetched.error_code
        or wanted.sent_error
        or fetched.diverging
        or fetched.preferred_read_replica >= 0
        or fetched.high_watermark != wanted.sent_watermark
        or fetched.log_start_offset != wanted.sent_start
    )


def _note_sent(session: Session, wanted: Wanted, fetched: Fetched) -> None:
    wanted.sent_watermark = fetched.high_watermark
    wanted.sent_start = fetched.log_start_offset
    wanted.sent_error = bool(fetched.error_code)
    if fetched.records and session.id:
        key = (wanted.topic, wanted.index)
        if session.wanted.get(key) is wanted:  # to the end of the line, so that all partitions get their turn
            session.wanted[key] = session.wanted.pop(key)
