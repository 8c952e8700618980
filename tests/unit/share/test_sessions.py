"""Share sessions: epochs, turns and limits."""

import pytest
from ottla.errors import Code, KafkaError
from ottla.share.core.sessions import FINAL_EPOCH, ShareSessions

A, B, C = (b"a", 0), (b"a", 1), (b"b", 0)


def refusal(sessions: ShareSessions, epoch: int, member: str = "ana") -> Code:
    with pytest.raises(KafkaError) as caught:
        sessions.proceed("group", member, epoch)
    return caught.value.code


def test_epochs() -> None:
    sessions = ShareSessions()
    assert refusal(sessions, 1) is refusal(sessions, FINAL_EPOCH) is Code.share_session_not_found
    session = sessions.open("group", "ana", [A], sessions_max=2)
    for epoch in (1, 2, 3):
        assert refusal(sessions, epoch + 1) is refusal(sessions, epoch - 1) is Code.invalid_share_session_epoch
        assert sessions.proceed("group", "ana", epoch) is session
    assert sessions.proceed("group", "ana", FINAL_EPOCH) is session
    session.epoch = 2**31 - 1
    sessions.proceed("group", "ana", 2**31 - 1)
    assert session.epoch == 1
    assert refusal(sessions, 1, member="ben") is Code.share_session_not_found


def test_opened_again() -> None:
    sessions = ShareSessions()
    first = sessions.open("group", "ana", [A], sessions_max=1)
    second = sessions.open("group", "ana", [B], sessions_max=1)
    assert list(second.wanted) == [B] and second.epoch == 1
    assert not sessions.end(first), "the connection that opened it ends late"
    assert sessions.has(second) and not sessions.has(first)
    assert sessions.end(second) and not sessions.end(second)
    assert len(sessions) == 0 and not sessions.any_of("group")


def test_limit() -> None:
    sessions = ShareSessions()
    sessions.open("group", "ana", [A], sessions_max=1)
    with pytest.raises(KafkaError) as caught:
        sessions.open("group", "ben", [A], sessions_max=1)
    assert caught.value.code is Code.share_session_limit_reached
    assert sessions.any_of("group") and not sessions.any_of("other")


def test_turns() -> None:
    session = ShareSessions().open("group", "ana", [A, B, C], sessions_max=1)
    session.served(A)
    assert list(session.wanted) == [B, C, A]
    session.change([A, B], [C])
    assert list(session.wanted) == [B, A], "who is added again keeps its place"
    session.served(C)
    assert list(session.wanted) == [B, A]
    session.change([C], [])
    assert list(session.wanted) == [B, A, C]
