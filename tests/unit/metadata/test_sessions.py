import math

import pytest
from ottla.metadata.decisions.sessions import Sessions


@pytest.fixture
def sessions() -> Sessions:
    made = Sessions(timeout_s=3.0, suspicion_s=0.5)
    made.begin([1, 2], now=10.0)
    return made


def test_a_new_controller_gives_everyone_a_fresh_session(sessions):
    assert sessions.expired(12.9) == []
    assert sessions.deadline() == 13.0
    assert sessions.expired(13.0) == [1, 2]


def test_a_heartbeat_prolongs_only_its_own_session(sessions):
    sessions.heard(2, now=12.0)
    assert sessions.expired(13.0) == [1]
    assert (sessions.alive, sessions.deadline()) == ({2}, 15.0)


def test_expired_sessions_are_told_once_and_begin_again_with_a_heartbeat(sessions):
    assert sessions.expired(20.0) == [1, 2]
    assert (sessions.expired(20.0), sessions.deadline()) == ([], math.inf)
    sessions.heard(1, now=20.0)
    assert sessions.alive == {1}


def test_a_suspect_gets_a_moment_to_contradict(sessions):
    sessions.suspect(1, now=10.1)
    sessions.suspect(2, now=10.1)
    sessions.heard(2, now=10.2)
    assert sessions.expired(10.6) == [1]
    assert sessions.expired(13.1) == []


def test_suspicion_never_prolongs_a_session_nor_begins_one(sessions):
    sessions.suspect(1, now=12.9)
    sessions.suspect(9, now=12.9)
    assert sessions.expired(13.0) == [1, 2]
    assert sessions.expired(20.0) == []


def test_what_the_controller_slept_through_is_nobodys_silence(sessions):
    sessions.extend(5.0)
    assert sessions.expired(17.9) == []
    assert sessions.expired(18.0) == [1, 2]


def test_who_left_is_not_waited_for(sessions):
    sessions.forget(1)
    assert sessions.expired(13.0) == [2]
