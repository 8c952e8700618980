"""Which lines a change leaves in the audit trail, whoever hangs up, however much it names, and however."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.api.authorizing import may
from ottla.api.call import Call
from ottla.api.change_trail import recorded
from ottla.api.client import Client
from ottla.errors import Code, KafkaError
from ottla.security.core.access import Operation, Resource
from ottla.security.core.acls import AclAuthorizer
from ottla.security.core.audit import LINES_MAX, AuditEvent, resource_lines
from support.calls import call_of

CREATE, DELETE, WRITE_MARKERS, DELETE_GROUPS, DELETE_OFFSETS, NEW_TOKEN = 19, 20, 27, 42, 47, 38


class Trail:
    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def record(self, event: AuditEvent) -> None:
        self.events.append(event)

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        return [(e.resource, e.verdict, e.reason) for e in self.events if e.verdict != "denied"]


def request(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**fields)


def named(*names: str) -> list[SimpleNamespace]:
    return [request(name=name, topic_id=None) for name in names]


def by_id(*ids: bytes) -> list[SimpleNamespace]:
    return [request(name=None, topic_id=each) for each in ids]


def asked(key: int, request: Any, *refused: tuple[Resource, str], error: Exception | None = None) -> Trail:
    """What is written down when these are refused on the way."""
    trail = Trail()

    async def handle(request: Any, call: Call) -> None:
        for resource, name in refused:
            may(call, Operation.DELETE, resource, name)
        if error is not None:
            raise error

    call = call_of(key, 6 if key == DELETE else 1)
    call.client = Client("SASL", "127.0.0.1", authorizer=AclAuthorizer(), trail=trail)
    if error is None:
        asyncio.run(recorded(key, handle)(request, call))
    else:
        with pytest.raises(type(error)):
            asyncio.run(recorded(key, handle)(request, call))
    return trail


def test_whoever_hangs_up_is_written_down_too() -> None:
    trail = Trail()

    async def main() -> None:
        begun = asyncio.Event()

        async def handle(request: Any, call: Call) -> None:
            begun.set()
            await asyncio.Event().wait()

        call = call_of(DELETE, 6)
        call.client = Client("SASL", "127.0.0.1", trail=trail)
        task = asyncio.ensure_future(recorded(DELETE, handle)(request(topics=named("orders")), call))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())
    assert trail.changes == [("Topic:orders", "allowed", "its connection ended before the answer")]


def test_what_failed_is_written_down() -> None:
    topics = request(topics=named("a"))
    assert asked(CREATE, topics, error=KafkaError(Code.not_controller)).changes == [
        ("Topic:a", "failed", "not_controller")
    ]
    assert asked(CREATE, topics, error=ZeroDivisionError("a secret")).changes == [
        ("Topic:a", "failed", "ZeroDivisionError")
    ]


def test_no_name_is_hidden_behind_others() -> None:
    names = [f"topic-{number}-{'x' * 200}" for number in range(300)] + ["the-one-that-counts"]
    changes = asked(CREATE, request(topics=named(*names))).changes
    assert {name for line, _, _ in changes for name in line.split(", ")} == {f"Topic:{name}" for name in names}
    assert all(len(line) <= 500 for line, _, _ in changes)


def test_lines_of_one_request() -> None:
    long = "a" * 1200
    lines = list(resource_lines(["b", long, "b", "c"]))
    assert "".join(lines).replace("…", "").replace(", ", "") == f"b{long}c"
    assert all(len(line) <= 500 for line in lines)
    many = list(resource_lines(f"{number} {'x' * 300}" for number in range(5000)))
    assert len(many) == LINES_MAX and many[-1] == "… and more of the same request"
    assert not list(resource_lines([]))


@pytest.mark.parametrize(
    ("key", "asks", "refused", "left"),
    [
        (DELETE, {"topics": named("a", "b")}, [(Resource.TOPIC, "a")], ["Topic:b"]),
        (DELETE, {"topics": named("a")}, [(Resource.TOPIC, "a"), (Resource.TOPIC, "x")], []),
        (DELETE, {"topics": named("a", "b")}, [(Resource.TOPIC, "a"), (Resource.TOPIC, "x")], ["Topic:b"]),
        (DELETE, {"topics": by_id(b"\1", b"\2")}, [(Resource.TOPIC, "a")], ["Topic:01", "Topic:02"]),
        (DELETE, {"topics": by_id(b"\1", b"\2")}, [(Resource.TOPIC, "a"), (Resource.TOPIC, "b")], []),
        (DELETE, {"topics": named("a", "b")}, [(Resource.CLUSTER, "kafka-cluster")], []),
        (DELETE_GROUPS, {"groups_names": ["a b", "b"]}, [(Resource.GROUP, "a b")], ["Group:b"]),
        (DELETE_GROUPS, {"groups_names": ["a Group:b"]}, [(Resource.GROUP, "b")], ["Group:a Group:b"]),
        (
            DELETE_OFFSETS,
            {"group_id": "g h", "topics": named("a", "b")},
            [(Resource.TOPIC, "a")],
            ["Group:g h Topic:b"],
        ),
        (DELETE_OFFSETS, {"group_id": "g h", "topics": named("a")}, [(Resource.GROUP, "g h")], []),
        (NEW_TOKEN, {"owner_principal_name": "ann"}, [(Resource.USER, "User:ann")], []),
    ],
)
def test_what_was_refused_is_not_called_allowed(
    key: int, asks: dict[str, Any], refused: list[tuple[Resource, str]], left: list[str]
) -> None:
    assert [line for line, _, _ in asked(key, request(**asks), *refused).changes] == ([", ".join(left)] if left else [])


def test_very_many_refusals() -> None:
    names = [f"t{number}" for number in range(1000)]
    trail = asked(DELETE, request(topics=named(*names, "mine")), *((Resource.TOPIC, name) for name in names))
    assert [line for line, _, _ in trail.changes] == ["Topic:mine"]


def test_markers_of_transactions() -> None:
    marker = request(producer_id=7, transaction_result=False, topics=named("orders"))
    assert asked(WRITE_MARKERS, request(markers=[marker])).changes == [
        ("Topic:orders (ABORT of producer id 7)", "allowed", "")
    ]
