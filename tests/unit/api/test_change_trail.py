"""Which lines a change leaves in the audit trail, whoever hangs up, however much it names, and however."""

import asyncio
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.api.authorizing import may
from ottla.api.call import Call
from ottla.api.change_outcomes import Outcomes
from ottla.api.change_trail import ANSWERS, CHANGES, recorded
from ottla.api.client import Client
from ottla.api.registry import load_all
from ottla.errors import Code, KafkaError
from ottla.security.core.access import Operation, Resource
from ottla.security.core.acls import AclAuthorizer
from ottla.security.core.audit import AuditEvent, resource_lines
from ottla.wire.schema import response_struct
from support.calls import call_of

CREATE, DELETE, DELETE_RECORDS, WRITE_MARKERS, CREATE_ACLS, DELETE_ACLS, GROW = 19, 20, 21, 27, 30, 31, 37
NEW_TOKEN, RENEW, DELETE_GROUPS, ELECT, CONFIGS, DELETE_OFFSETS = 38, 39, 42, 43, 44, 47
NO_ID = uuid.UUID(int=0)


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


def asked(
    key: int,
    request: Any,
    *refused: tuple[Resource, str],
    error: Exception | None = None,
    version: int | None = None,
    answer: dict[str, Any] | None = None,
) -> Trail:
    """What is written down when these are refused on the way, and this is answered."""
    trail = Trail()

    async def handle(request: Any, call: Call) -> Any:
        for resource, name in refused:
            may(call, Operation.DELETE, resource, name)
        if error is not None:
            raise error
        return call.reply(**(answer or {}))

    call = call_of(key, version if version is not None else 6 if key == DELETE else 1)
    call.client = Client("SASL", "127.0.0.1", authorizer=AclAuthorizer(), trail=trail)
    if error is None:
        asyncio.run(recorded(key, handle)(request, call))
    else:
        with pytest.raises(type(error)):
            asyncio.run(recorded(key, handle)(request, call))
    return trail


def line(name: str, code: Code = Code.none, **more: Any) -> dict[str, Any]:
    return {"name": name, "error_code": code, "error_message": None, **more}


def deleted(*lines: tuple[str | None, Code], topic_id: uuid.UUID = NO_ID) -> dict[str, Any]:
    return {"responses": [line(name, code, topic_id=topic_id) for name, code in lines]}  # type: ignore[arg-type]


def by_partition(name: str, *codes: Code, array: str = "partitions") -> dict[str, Any]:
    return {"name": name, array: [{"partition_index": i, "error_code": code} for i, code in enumerate(codes)]}


def test_what_nobody_waited_for_is_written_down_too() -> None:
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
    assert trail.changes == [("Topic:orders", "unknown", "its connection ended before the answer")]


def test_what_failed_is_written_down() -> None:
    topics = request(topics=named("a"))
    assert asked(CREATE, topics, error=KafkaError(Code.not_controller)).changes == [
        ("Topic:a", "failed", "not_controller")
    ]
    assert asked(CREATE, topics, error=ZeroDivisionError("a secret")).changes == [
        ("Topic:a", "failed", "ZeroDivisionError")
    ]


def test_no_name_is_hidden_behind_others() -> None:
    names = [f"topic-{number}-{'x' * 200}" for number in range(3000)] + ["the-one-that-counts"]
    answer = deleted(*((name, Code.none) for name in names))
    changes = asked(DELETE, request(topic_names=names), version=3, answer=answer).changes
    assert {name for told, _, _ in changes for name in told.split(", ")} == {f"Topic:{name}" for name in names}
    assert all(len(told) <= 500 and verdict == "allowed" for told, verdict, _ in changes)


def test_what_changed_something_comes_first_and_what_did_not_is_a_count_when_it_is_too_much() -> None:
    names = [f"topic-{number}-{'x' * 200}" for number in range(2100)]
    answer = deleted(*((name, Code.unknown_topic_or_partition) for name in names), ("payroll", Code.none))
    trail = asked(DELETE, request(topic_names=[*names, "payroll"]), version=3, answer=answer)
    assert trail.changes[0] == ("Topic:payroll", "allowed", "")
    failed = trail.changes[1:]
    assert len(failed) <= 10
    assert {each[1:] for each in failed} == {("failed", "unknown_topic_or_partition")}
    named = sum(told.count("Topic:") for told, _, _ in failed)
    assert failed[-1][0] == f"… and {2100 - named} more of the same request"


def test_lines_of_one_request() -> None:
    long = "a" * 1200
    lines = list(resource_lines(["b", long, "b", "c"]))
    assert "".join(lines).replace("…", "").replace(", ", "") == f"b{long}c"
    assert all(len(line) <= 500 for line in lines)
    many = [f"{number} {'x' * 300}" for number in range(5000)]
    assert len(list(resource_lines(many))) == 5000
    assert list(resource_lines(many, 3)) == [*many[:2], "… and 4998 more of the same request"]
    assert list(resource_lines(many[:2], 3)) == many[:2]
    assert not list(resource_lines([]))


DENIED = Code.topic_authorization_failed
GONE = ("Topic:b", "allowed", "")
ID_1, ID_2 = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.mark.parametrize(
    ("key", "asks", "refused", "answer", "left"),
    [
        (
            DELETE,
            {"topics": named("a", "b")},
            [(Resource.TOPIC, "a")],
            deleted(("a", DENIED), ("b", Code.none)),
            [GONE],
        ),
        (DELETE, {"topics": named("a")}, [(Resource.TOPIC, "a")], deleted(("a", DENIED)), []),
        (DELETE, {"topics": by_id(ID_1.bytes)}, [(Resource.TOPIC, "a")], deleted((None, DENIED), topic_id=ID_1), []),
        (
            DELETE,
            {"topics": by_id(ID_1.bytes, ID_2.bytes)},
            [(Resource.TOPIC, "a")],
            {"responses": [line("a", DENIED, topic_id=ID_1), line("b", topic_id=ID_2)]},
            [(f"Topic:{ID_2.hex}", "allowed", "")],
        ),
        (
            DELETE_GROUPS,
            {"groups_names": ["a Group:b", "b"]},
            [(Resource.GROUP, "b")],
            {
                "results": [
                    {"group_id": "a Group:b", "error_code": Code.none},
                    {"group_id": "b", "error_code": Code.group_authorization_failed},
                ]
            },
            [("Group:a Group:b", "allowed", "")],
        ),
        (
            DELETE_OFFSETS,
            {"group_id": "g h", "topics": named("a", "b")},
            [(Resource.TOPIC, "a")],
            {"error_code": Code.none, "topics": [by_partition("a", DENIED), by_partition("b", Code.none)]},
            [("Group:g h Topic:b", "allowed", "")],
        ),
    ],
)
def test_what_was_refused_is_not_called_allowed(
    key: int, asks: dict[str, Any], refused: list[tuple[Resource, str]], answer: dict[str, Any], left: list[Any]
) -> None:
    version = 0 if key == DELETE_OFFSETS else None
    assert asked(key, request(**asks), *refused, version=version, answer=answer).changes == left


def test_what_was_refused_as_a_whole_is_not_called_failed() -> None:
    denied = KafkaError(Code.group_authorization_failed)
    asks = request(group_id="g h", topics=named("a"))
    assert not asked(DELETE_OFFSETS, asks, (Resource.GROUP, "g h"), version=0, error=denied).changes
    assert asked(DELETE_OFFSETS, asks, version=0, error=denied).changes == [
        ("Group:g h Topic:a", "failed", "group_authorization_failed")
    ]


def token(code: Code) -> dict[str, Any]:
    times = dict.fromkeys(("issue_timestamp", "expiry_timestamp", "max_timestamp"), -1)
    return {"error_code": code, "token_id": "", "hmac": b"", "principal_type": "", "principal_name": "", **times}


OFF = Code.delegation_token_request_not_allowed
ACL = {"resource_type": 2, "resource_pattern_type": 3, "resource_name": "a", "permission_type": 3, "operation": 4,
       "principal": "User:ann", "host": "*"}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "version", "asks", "answer", "told"),
    [
        (
            DELETE,
            3,
            {"topic_names": ["payroll", "payroll"]},
            deleted(("payroll", Code.invalid_request), ("payroll", Code.invalid_request)),
            [("Topic:payroll", "failed", "invalid_request")],
        ),
        (NEW_TOKEN, 1, {}, token(OFF), [("DelegationToken of oneself", "failed", OFF.name)]),
        (NEW_TOKEN, 1, {}, token(Code.none), [("DelegationToken of oneself", "allowed", "")]),
        (
            RENEW,
            1,
            {},
            {"error_code": Code.delegation_token_not_found, "expiry_timestamp": -1},
            [("DelegationToken", "failed", "delegation_token_not_found")],
        ),
        (
            DELETE_RECORDS,
            1,
            {"topics": named("a", "b", "c", "d")},
            {
                "topics": [
                    {**topic, "partitions": [{**each, "low_watermark": -1} for each in topic["partitions"]]}
                    for topic in (
                        by_partition("a", Code.offset_out_of_range, Code.none),
                        by_partition("b", Code.offset_out_of_range),
                        by_partition("c", Code.request_timed_out),
                        by_partition("d"),
                    )
                ]
            },
            [
                ("Topic:a, Topic:c", "allowed", ""),
                ("Topic:b", "failed", "offset_out_of_range"),
                ("Topic:d", "failed", "there was nothing to change"),
            ],
        ),
        (
            CONFIGS,
            1,
            {
                "resources": [
                    request(resource_type=kind, resource_name=name, configs=named("a.ms", "b.ms"))
                    for kind, name in ((2, "orders"), (4, "1"), (2, "gone"))
                ]
            },
            {
                "responses": [
                    {"error_code": code, "error_message": None, "resource_type": kind, "resource_name": name}
                    for kind, name, code in (
                        (2, "orders", Code.none),
                        (4, "1", Code.none),
                        (2, "gone", Code.unknown_topic_or_partition),
                    )
                ]
            },
            [
                ("Topic:orders (a.ms,b.ms), Cluster:kafka-cluster Broker:1 (a.ms,b.ms)", "allowed", ""),
                ("Topic:gone (a.ms,b.ms)", "failed", "unknown_topic_or_partition"),
            ],
        ),
        (
            CREATE_ACLS,
            1,
            {"creations": [request(**ACL), request(**{**ACL, "resource_name": "b"})]},
            {"results": [line("", Code.invalid_request), line("")]},
            [
                ("Acl:TOPIC LITERAL:b ALLOW WRITE User:ann from *", "allowed", ""),
                ("Acl:TOPIC LITERAL:a ALLOW WRITE User:ann from *", "failed", "invalid_request"),
            ],
        ),
        (
            DELETE_ACLS,
            1,
            {"filters": [request(resource_type_filter=2, resource_name_filter="a", principal_filter=None)]},
            {"filter_results": [line("", matching_acls=[])]},
            [("AclFilter:TOPIC:a *", "failed", "there was nothing to change")],
        ),
        (
            ELECT,
            1,
            {"topic_partitions": None},
            {"error_code": Code.none, "replica_election_results": []},
            [("Topic:*", "failed", "there was nothing to change")],
        ),
        (
            ELECT,
            1,
            {"topic_partitions": None},
            {"error_code": Code.not_controller, "replica_election_results": []},
            [("Topic:*", "failed", "not_controller")],
        ),
    ],
)
def test_the_verdict_is_what_the_answer_says(
    key: int, version: int, asks: dict[str, Any], answer: dict[str, Any], told: list[Any]
) -> None:
    assert asked(key, request(**asks), version=version, answer=answer).changes == told


def test_what_is_only_tried_out_is_no_change() -> None:
    answer = {"results": [line("a")]}
    assert not asked(GROW, request(topics=named("a"), validate_only=True), version=1, answer=answer).changes
    assert asked(GROW, request(topics=named("a"), validate_only=False), version=1, answer=answer).changes


@pytest.mark.parametrize("key", CHANGES)
def test_every_answer_has_what_the_verdict_is_taken_from(key: int) -> None:
    api = load_all()[key]
    for version in range(api.version_min, api.version_max + 1):
        fields = {field.name: field for field in response_struct(key, version).fields}
        if key in ANSWERS:
            array = fields[ANSWERS[key].array]
            assert array.is_array and array.struct is not None
        else:
            assert "error_code" in fields


def test_very_many_refusals() -> None:
    names = [f"t{number}" for number in range(1000)]
    answer = deleted(*((name, DENIED) for name in names), ("mine", Code.none))
    refused = ((Resource.TOPIC, name) for name in names)
    trail = asked(DELETE, request(topics=named(*names, "mine")), *refused, answer=answer)
    assert [line for line, _, _ in trail.changes] == ["Topic:mine"]


def test_markers_of_transactions() -> None:
    marker = request(producer_id=7, transaction_result=False, topics=named("orders", "gone"))
    topics = [by_partition("orders", Code.none), by_partition("gone", Code.unknown_topic_or_partition)]
    answer = {"markers": [{"producer_id": 7, "topics": topics}]}
    assert asked(WRITE_MARKERS, request(markers=[marker]), answer=answer).changes == [
        ("Topic:orders (ABORT of producer id 7)", "allowed", ""),
        ("Topic:gone (ABORT of producer id 7)", "failed", "unknown_topic_or_partition"),
    ]


def test_lines_that_are_encoded_at_once_count() -> None:
    """As those of large requests: what is inside of a line comes first."""
    outcomes = Outcomes(ANSWERS[DELETE_RECORDS])
    outcomes.element(("topics", "partitions"), {"partition_index": 0, "error_code": Code.none})
    outcomes.element(("topics",), {"name": "a", "partitions": None})
    outcomes.element(("topics",), {"name": "b", "partitions": None})
    outcomes.answered({"topics": None})
    assert [outcomes.of(name, 0) for name in "ab"] == [{Code.none}, frozenset()]
