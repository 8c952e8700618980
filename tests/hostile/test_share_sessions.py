"""Share sessions that ask for ever more, of topics that do not exist, and members with endless names."""

import os
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import pytest
from ottla.errors import Code
from ottla.share.core.sessions import SESSION_PARTITIONS_MAX
from support.frames import Connection, framed
from support.process import BrokerProcess
from support.raw_requests import compact, header, uvarint
from support.waiting import eventually

MEMBER = "AAAAAAAAAAAAAAAAAAAAA"
CODE_AT = 9  # behind correlation id, tags and throttle time
NAMED_AT_ONCE = 1_900  # partitions, in 11 KB
GROWING_REQUESTS = 25
Attack = Callable[..., AbstractContextManager[BrokerProcess]]


def enable_share_groups() -> bytes:
    feature = compact(b"share.version") + struct.pack(">hbb", 1, 1, 0)
    return framed(header(57, 1) + b"\0" + struct.pack(">i", 10_000) + b"\2" + feature + b"\0\0")


def share_fetch(member: str, epoch: int, topic_id: bytes, indexes: Sequence[int]) -> bytes:
    limits = struct.pack(">iiiiii", epoch, 0, 0, 1 << 20, 500, 500)
    parts = b"".join(struct.pack(">i", index) + b"\1\0" for index in indexes)
    topics = b"\2" + topic_id + uvarint(len(indexes) + 1) + parts + b"\0" if indexes else b"\1"
    return framed(header(78, 1) + b"\0" + compact(b"g") + compact(member.encode()) + limits + topics + b"\1\0")


def code_of(answer: bytes) -> Code:
    return Code(struct.unpack_from(">h", answer, CODE_AT)[0])


@pytest.fixture(scope="module", autouse=True)
def enabled(broker: BrokerProcess) -> None:
    with Connection(broker.port) as connection:

        def is_served() -> bool:
            connection.send(enable_share_groups())
            connection.read_frame()
            connection.send(share_fetch(MEMBER + "w", 0, os.urandom(16), [0]))
            return code_of(connection.read_frame()) is Code.none

        eventually(is_served, bool)


def test_a_session_that_grows(attack: Attack) -> None:
    topic_id, codes = os.urandom(16), []
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:
        for epoch in range(GROWING_REQUESTS):
            begin = epoch * NAMED_AT_ONCE
            connection.send(share_fetch(MEMBER + "A", epoch, topic_id, range(begin, begin + NAMED_AT_ONCE)))
            codes.append(code_of(connection.read_frame()))
        fitting = SESSION_PARTITIONS_MAX // NAMED_AT_ONCE
        assert codes == [Code.none] * fitting + [Code.share_session_limit_reached] * (GROWING_REQUESTS - fitting)
        for epoch in range(GROWING_REQUESTS, GROWING_REQUESTS + 20):
            connection.send(share_fetch(MEMBER + "A", epoch, topic_id, []))
            assert code_of(connection.read_frame()) is Code.none


def test_members_with_endless_names(attack: Attack) -> None:
    topic_id, name = os.urandom(16), "m" * 1_000_000
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:
        for number in range(100):
            connection.send(share_fetch(f"{number}{name}", 0, topic_id, [0]))
            assert code_of(connection.read_frame()) is Code.invalid_request
