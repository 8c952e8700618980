"""Bytes under way: who waits, who is let in, who has to go."""

import pytest
from ottla.net.memory import AnswerMemory, RequestMemory


class Peer:
    """A receiver and a sender."""

    def __init__(self, held_bytes: int = 0, memory: AnswerMemory | None = None) -> None:
        self.received_bytes = 0
        self.held_bytes = held_bytes
        self.closed: str | None = None
        self.resumed = 0
        self._memory = memory

    def resume(self) -> None:
        self.resumed += 1

    def close(self, reason: str) -> None:
        self.closed = reason

    def abort(self, reason: str) -> None:
        self.closed = reason
        if self._memory is not None:
            self._memory.flowing(self)
            self._memory.change(-self.held_bytes)


def test_requests_wait_in_line_for_memory():
    memory, (a, b, c) = RequestMemory(100), (Peer(), Peer(), Peer())
    assert memory.reserve(60, a, a.resume)
    assert not memory.reserve(50, b, b.resume)
    assert not memory.reserve(10, c, c.resume), "it would fit, but b was there before"
    memory.release(60, a)
    assert (b.resumed, c.resumed, memory.used_bytes) == (1, 1, 60)


def test_a_request_larger_than_the_limit_is_let_in_alone():
    memory, (a, b) = RequestMemory(100), (Peer(), Peer())
    assert memory.reserve(500, a, a.resume)
    assert not memory.reserve(1, b, b.resume)
    memory.release(500, a)
    assert b.resumed == 1


def test_whoever_leaves_the_line_lets_the_next_one_in():
    memory, (a, b, c) = RequestMemory(100), (Peer(), Peer(), Peer())
    memory.reserve(60, a, a.resume)
    memory.reserve(90, b, b.resume)
    memory.reserve(30, c, c.resume)
    memory.forget(b)
    assert (b.resumed, c.resumed) == (0, 1)


@pytest.mark.parametrize(("bytes_more", "closed"), [(10, True), (1 << 20, False)])
def test_a_slow_frame_is_given_up_only_while_others_wait(bytes_more, closed):
    memory, (slow, waiting) = RequestMemory(100), (Peer(), Peer())
    memory.reserve(100, slow, slow.resume)
    memory.close_the_slow(10.0)
    memory.close_the_slow(20.0)
    assert slow.closed is None, "nobody waits"
    memory.reserve(100, waiting, waiting.resume)
    slow.received_bytes += bytes_more
    memory.close_the_slow(30.0)
    assert (slow.closed is not None) == closed


def test_clients_that_take_nothing_have_to_go_when_memory_is_scarce():
    now = [0.0]
    memory = AnswerMemory(100, lambda: now[0])
    small, large = Peer(40, memory), Peer(50, memory)
    for peer in (small, large):
        memory.change(peer.held_bytes)
        memory.stalled(peer)
    memory.change(20)
    assert small.closed is large.closed is None, "they have a second"
    now[0] = 2.0
    memory.change(1)
    assert large.closed and small.closed is None


def test_beyond_twice_the_limit_there_is_no_second():
    memory = AnswerMemory(100, lambda: 0.0)
    peer = Peer(250, memory)
    memory.stalled(peer)
    memory.change(250)
    assert peer.closed
