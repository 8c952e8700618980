"""Share sessions: epochs, turns and limits."""

from collections.abc import Callable

import pytest
from ottla.errors import Code, KafkaError
from ottla.share.core import sessions as limits
from ottla.share.core.sessions import FINAL_EPOCH, ShareSessions

ANA, BEN = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
A, B, C = (b"a", 0), (b"a", 1), (b"b", 0)


def refusal(sessions: ShareSessions, epoch: int, member: str = ANA) -> Code:
    with pytest.raises(KafkaError) as caught:
        sessions.proceed("group", member, epoch)
    return caught.value.code


def test_epochs() -> None:
    sessions = ShareSessions()
    assert refusal(sessions, 1) is refusal(sessions, FINAL_EPOCH) is Code.share_session_not_found
    session = sessions.open("group", ANA, [A], sessions_max=2)
    for epoch in (1, 2, 3):
        assert refusal(sessions, epoch + 1) is refusal(sessions, epoch - 1) is Code.invalid_share_session_epoch
        assert sessions.proceed("group", ANA, epoch) is session
    assert sessions.proceed("group", ANA, FINAL_EPOCH) is session
    session.epoch = 2**31 - 1
    sessions.proceed("group", ANA, 2**31 - 1)
    assert session.epoch == 1
    assert refusal(sessions, 1, member=BEN) is Code.share_session_not_found


def test_opened_again() -> None:
    sessions = ShareSessions()
    first = sessions.open("group", ANA, [A], sessions_max=1)
    second = sessions.open("group", ANA, [B], sessions_max=1)
    assert list(second.wanted) == [B] and second.epoch == 1
    assert not sessions.end(first), "the connection that opened it ends late"
    assert sessions.has(second) and not sessions.has(first)
    assert sessions.end(second) and not sessions.end(second)
    assert len(sessions) == 0 and not sessions.any_of("group")


def test_limit() -> None:
    sessions = ShareSessions()
    sessions.open("group", ANA, [A], sessions_max=1)
    with pytest.raises(KafkaError) as caught:
        sessions.open("group", BEN, [A], sessions_max=1)
    assert caught.value.code is Code.share_session_limit_reached
    assert sessions.any_of("group") and not sessions.any_of("other")


def test_turns() -> None:
    sessions = ShareSessions()
    session = sessions.open("group", ANA, [A, B, C], sessions_max=1)
    session.served(A)
    assert list(session.wanted) == [B, C, A]
    sessions.change(session, [A, B], [C])
    assert list(session.wanted) == [B, A], "who is added again keeps its place"
    session.served(C)
    assert list(session.wanted) == [B, A]
    sessions.change(session, [C], [])
    assert list(session.wanted) == [B, A, C]


def refused(code: Code, act: Callable[[], object]) -> None:
    with pytest.raises(KafkaError) as caught:
        act()
    assert caught.value.code is code


def test_a_session_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that grows by small requests, of partitions that do not exist."""
    monkeypatch.setattr(limits, "SESSION_PARTITIONS_MAX", 3)
    monkeypatch.setattr(limits, "PARTITIONS_MAX", 4)
    sessions = ShareSessions()
    ana = sessions.open("group", ANA, [A, B], sessions_max=9)
    refused(Code.share_session_limit_reached, lambda: sessions.change(ana, [(b"c", 0), (b"d", 0)], []))
    assert list(ana.wanted) == [A, B]
    sessions.change(ana, [C, (b"d", 0)], [A])
    assert list(ana.wanted) == [B, C, (b"d", 0)]
    refused(Code.share_session_limit_reached, lambda: sessions.open("group", BEN, [A, B], sessions_max=9))
    ben = sessions.open("other", BEN, [A], sessions_max=9)
    refused(Code.share_session_limit_reached, lambda: sessions.change(ben, [B], []))
    sessions.change(ana, [], [C, B])
    sessions.change(ben, [B, C], [])
    again = sessions.open("other", BEN, [A, B, C], sessions_max=9)
    assert sessions.end(again) and sessions.end(ana)
    sessions.open("group", ANA, [A, B, C], sessions_max=9)
    sessions.open("group", BEN, [A], sessions_max=9)


@pytest.mark.parametrize("member", ["", "ana", "*" * 22, "A" * 1_000_000, ANA + "==", "AAAA"])
def test_what_is_kept_for_a_session_is_small(member: str) -> None:
    sessions = ShareSessions()
    refused(Code.invalid_request, lambda: sessions.open("group", member, [A], sessions_max=9))
    refused(Code.invalid_group_id, lambda: sessions.open("g" * 40_000, ANA, [A], sessions_max=9))
    assert sessions.open("group", "5e7c1a0e-3f0a-4ad0-8a57-5a6f1c3a0b11", [A], sessions_max=9), (
        "as other clients write it"
    )


def test_its_end_is_told_once() -> None:
    sessions, ended = ShareSessions(), list[str]()
    first = sessions.open("group", ANA, [A], sessions_max=1)
    first.on_end = lambda: ended.append("first")
    second = sessions.open("group", ANA, [B], sessions_max=1)
    second.on_end = lambda: ended.append("second")
    assert ended == ["first"]
    assert not sessions.end(first) and sessions.end(second) and not sessions.end(second)
    assert ended == ["first", "second"]
