"""KIP-227 as a table of requests and what the cache makes of them."""

from random import Random

import pytest
from ottla.api.fetch_sessions import EPOCH_MAX, EVICTION_SECONDS, FetchSessions, Session, Wanted
from ottla.errors import Code, KafkaError


def cache(sessions_max: int = 10) -> FetchSessions:
    return FetchSessions(sessions_max=sessions_max, random=Random(1))


def want(index: int, offset: int = 0) -> Wanted:
    return Wanted("t", index, offset, 1000)


def begin(
    sessions: FetchSessions, session_id: int, epoch: int, *wanted: Wanted, now: float = 0.0, **more: object
) -> Session:
    return sessions.begin(
        session_id=session_id,
        epoch=epoch,
        wanted=wanted,
        forgotten=more.get("forgotten", ()),  # type: ignore[arg-type]
        uses_ids=bool(more.get("uses_ids")),
        now=now,
    )


def code_of(*arguments: object, **more: object) -> Code:
    with pytest.raises(KafkaError) as caught:
        begin(*arguments, **more)  # type: ignore[arg-type]
    return caught.value.code


def test_a_first_request_makes_a_session_and_the_next_one_changes_it() -> None:
    sessions = cache()
    first = begin(sessions, 0, 0, want(0), want(1))
    assert first.id > 0
    assert not first.incremental
    second = begin(sessions, first.id, 1, want(1, offset=5), want(2), forgotten=[("t", 0)])
    assert second is first
    assert second.incremental
    assert {key: wanted.offset for key, wanted in second.wanted.items()} == {("t", 1): 5, ("t", 2): 0}


def test_epochs_count_up_and_wrap_to_one() -> None:
    sessions = cache()
    session = begin(sessions, 0, 0, want(0))
    for epoch in (1, 2, 3):
        assert begin(sessions, session.id, epoch) is session
    session.epoch = EPOCH_MAX
    begin(sessions, session.id, EPOCH_MAX)
    assert session.epoch == 1


@pytest.mark.parametrize("epoch", [2, 7])
def test_a_wrong_epoch_is_refused(epoch: int) -> None:
    sessions = cache()
    session = begin(sessions, 0, 0, want(0))
    assert code_of(sessions, session.id, epoch) is Code.invalid_fetch_session_epoch


def test_an_unknown_session_is_refused() -> None:
    assert code_of(cache(), 99, 1) is Code.fetch_session_id_not_found


def test_names_and_ids_do_not_mix() -> None:
    sessions = cache()
    session = begin(sessions, 0, 0, want(0))
    assert code_of(sessions, session.id, 1, uses_ids=True) is Code.fetch_session_topic_id_error


def test_the_final_epoch_closes_the_session() -> None:
    sessions = cache()
    session = begin(sessions, 0, 0, want(0))
    assert begin(sessions, session.id, -1, want(0)).id == 0
    assert len(sessions) == 0


def test_a_full_cache_serves_without_session_until_one_is_idle() -> None:
    sessions = cache(sessions_max=1)
    first = begin(sessions, 0, 0, want(0), now=0.0)
    assert begin(sessions, 0, 0, want(0), now=1.0).id == 0
    later = begin(sessions, 0, 0, want(0), now=EVICTION_SECONDS + 1)
    assert later.id not in (0, first.id)
    assert code_of(sessions, first.id, 1) is Code.fetch_session_id_not_found


def test_no_session_is_kept_for_names_that_cannot_exist() -> None:
    """Eight requests with names of a megabyte kept 300 MB, whatever became of their connections."""
    sessions, long = cache(), Wanted("x" * 300, 0, 0, 1000)
    first = begin(sessions, 0, 0, want(1), long)
    assert first.id == 0 and len(first.wanted) == 2, "it is answered all the same"
    assert len(sessions) == 0
    known = begin(sessions, 0, 0, want(1))
    assert code_of(sessions, known.id, 1, long) is Code.fetch_session_id_not_found
    assert len(sessions) == 0
