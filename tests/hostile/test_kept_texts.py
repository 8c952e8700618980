"""Texts that stay when the client has gone: in the metadata for good, those of groups and transactions for a week."""

import struct
from collections.abc import Callable
from contextlib import AbstractContextManager

from ottla.errors import Code
from support.frames import Connection, framed
from support.process import BrokerProcess
from support.raw_requests import compact, header, text, uvarint
from support.waiting import eventually

IDS_BYTES_MAX = 1 << 20
BROKER_SETTINGS = {
    "ottla.transactional.ids.bytes.max": str(IDS_BYTES_MAX),
    "ottla.groups.bytes.max": str(IDS_BYTES_MAX),
}
ID_BYTES = 32_000
IDS = 200
REQUESTS, NAMES = 20, 60

Attack = Callable[..., AbstractContextManager[BrokerProcess]]


def alter_quotas(names: list[str]) -> bytes:
    quota = b"\2" + compact(b"request_percentage") + struct.pack(">d", 100.0) + b"\0\0"
    lines = [b"\2" + compact(b"client-id") + compact(name.encode()) + b"\0" + quota + b"\0" for name in names]
    return framed(header(49, 1) + b"\0" + uvarint(len(lines) + 1) + b"".join(lines) + b"\0\0")


def init_producer_id(transactional_id: str) -> bytes:
    return framed(header(22, 1) + text(transactional_id) + struct.pack(">i", 60_000))


def find_coordinator(key: str, kind: bytes = b"\1") -> bytes:
    return framed(header(10, 1) + text(key) + kind)


def offset_commit(group: str, topic: str) -> bytes:
    """Version 7, without a member, of partition 0."""
    place = struct.pack(">iiqi", 1, 0, 1, -1) + text("")
    member = struct.pack(">i", -1) + text("") + struct.pack(">h", -1)
    return framed(header(8, 7) + text(group) + member + struct.pack(">i", 1) + text(topic) + place)


def test_names_of_quotas(attack: Attack) -> None:
    """60 requests of 1.9 MB took half a gigabyte, and took it again after a restart."""
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:
        for number in range(REQUESTS):
            connection.send(alter_quotas([f"{number}-{each}-".ljust(32_000, "x") for each in range(NAMES)]))
            assert struct.unpack_from(">h", connection.read_frame(), 10)[0] == Code.invalid_request


def test_transactional_ids(attack: Attack, brokers: dict[int, BrokerProcess]) -> None:
    """4,000 of them took 123 MB for a week. Those that are known go on."""
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:

        def ask(request: bytes) -> int:
            connection.send(request)
            return int(struct.unpack_from(">h", connection.read_frame(), 8)[0])

        eventually(lambda: ask(find_coordinator("known")), lambda code: code == Code.none)
        ids = ["known", *(f"{number}-".ljust(ID_BYTES, "y") for number in range(IDS))]
        wait = (Code.coordinator_load_in_progress, Code.not_coordinator)
        eventually(lambda: ask(init_producer_id(ids[0])), lambda code: code not in wait)
        codes = [ask(init_producer_id(each)) for each in ids]
        accepted = [each for each, code in zip(ids, codes, strict=True) if code == Code.none]
        assert len(accepted) * ID_BYTES <= IDS_BYTES_MAX + ID_BYTES
        assert Code.coordinator_not_available in codes
        assert all(ask(init_producer_id(each)) == Code.none for each in accepted)


def test_ids_of_groups_that_only_commit(
    attack: Attack, brokers: dict[int, BrokerProcess], led_topic: Callable[..., str]
) -> None:
    """Each took 34 kB for a week. Those that are known go on."""
    topic = led_topic("commits-of-groups", next(iter(brokers.values())))
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:

        def coordinator() -> int:
            connection.send(find_coordinator("known", b"\0"))
            return int(struct.unpack_from(">h", connection.read_frame(), 8)[0])

        def commit(group: str) -> int:
            connection.send(offset_commit(group, topic))
            return int(struct.unpack(">h", connection.read_frame()[-2:])[0])

        eventually(coordinator, lambda code: code == Code.none)
        wait = (Code.coordinator_load_in_progress, Code.not_coordinator)
        eventually(lambda: commit("known"), lambda code: code not in wait)
        ids = ["known", *(f"{number}-".ljust(ID_BYTES, "z") for number in range(IDS))]
        codes = [commit(each) for each in ids]
        accepted = [each for each, code in zip(ids, codes, strict=True) if code == Code.none]
        assert "known" in accepted and len(accepted) * ID_BYTES <= IDS_BYTES_MAX + ID_BYTES
        assert Code.coordinator_not_available in codes
        assert all(commit(each) == Code.none for each in accepted)
