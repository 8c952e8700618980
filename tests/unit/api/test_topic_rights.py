"""What of a request about topics reaches the controller: nothing that its client may not do, whatever the request looks
like, however much of a quota is left, and however far the image of this broker is behind the controller's."""

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.create_partitions.v3 import request as grow
from kio.schema.create_topics.v7 import request as create
from kio.schema.delete_topics.v6 import request as delete
from ottla.api.allowances import Allowance, Mutations
from ottla.api.authorizing import topic_access
from ottla.api.client import Client
from ottla.config import configure
from ottla.errors import Code
from ottla.metadata.decisions.commands import NewTopic
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.metadata.model.image import Image
from ottla.replica.settings import LiveSettings
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.security.core.acls import AclAuthorizer
from ottla.security.core.audit import AuditEvent
from ottla.security.core.principals import Principal
from support.calls import call_of, handle, read
from support.decisions import Fleet

CONFIG = configure({"node.id": "0"}, {"node.id": "--set"})
BOB = Principal("User", "bob")
TIMEOUT = timedelta(seconds=20)
DELETE, CREATE, GROW = 20, 19, 37
VERSIONS = {DELETE: 6, CREATE: 7, GROW: 3}
UNAUTHORIZED, UNKNOWN, UNKNOWN_ID = (
    Code.topic_authorization_failed,
    Code.unknown_topic_or_partition,
    Code.unknown_topic_id,
)
DUPLICATE = (Code.invalid_request, "Duplicate topic name.")


class Bucket:
    """A quota that lets one change pass and no second one."""

    def __init__(self) -> None:
        self.charged: list[float] = []

    def take(self, count: float, limit: float, now_ms: int) -> None:
        self.charged.append(count)

    def pause_ms(self, limit: float, now_ms: int) -> int:
        return 1000 if self.charged else 0


class HandClock:
    def monotonic(self) -> float:
        return 0.0

    def wall_ms(self) -> int:
        return 0


class Broker:
    """Its image stays what it was when the broker was made, until it waits for what it submitted."""

    def __init__(self, fleet: Fleet, *bindings: AclBinding, catches_up: bool = False) -> None:
        self.image = fleet.image
        self.submitted: list[str] = []
        self.trail: list[AuditEvent] = []
        self.bucket = Bucket()
        self._fleet = fleet
        self._catches_up = catches_up
        self._client = Client("SASL", "127.0.0.1", principal=BOB, authorizer=AclAuthorizer(bindings), trail=self)

    def record(self, event: AuditEvent) -> None:
        self.trail.append(event)

    async def submit(self, command: Any) -> Any:
        self.submitted += [str(getattr(each, "topic", None) or each.name or each.id) for each in command.topics]
        reply = self._fleet.ask(command)
        if self._catches_up:
            self.image = self._fleet.image
        return reply

    def asked(self, request: Any, *, quota: bool = False) -> Any:
        key = request.__api_key__
        call = call_of(key, VERSIONS[key])
        call.client = self._client
        if quota:
            call.allowance = Allowance(
                produce=None, fetch=None, request=None, mutations=Mutations(self.bucket, 1.0, HandClock())
            )
        settings = LiveSettings(CONFIG, 0, lambda: self.image)
        answer = asyncio.run(handle(read(request), call, controller=self, feed=self, settings=settings))
        lines = next(getattr(answer, field) for field in ("responses", "topics", "results") if hasattr(answer, field))
        return [(line.name, Code(line.error_code), line.error_message) for line in lines]


def allowed(operation: Operation, name: str, resource: Resource = Resource.TOPIC) -> AclBinding:
    return AclBinding(resource, PatternType.LITERAL, name, str(BOB), "*", operation, Permission.ALLOW)


def fleet_of(*topics: str) -> Fleet:
    fleet = Fleet()
    fleet.create(*(NewTopic(name, 3, 1) for name in topics))
    return fleet


def deletion(*refs: str | uuid.UUID) -> Any:
    named = [(None, each) if isinstance(each, uuid.UUID) else (each, None) for each in refs]
    return delete.DeleteTopicsRequest(
        topics=tuple(delete.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in named), timeout=TIMEOUT
    )


def creation(*names: str) -> Any:
    return create.CreateTopicsRequest(
        topics=tuple(
            create.CreatableTopic(name=name, num_partitions=4, replication_factor=1, assignments=(), configs=())
            for name in names
        ),
        timeout=TIMEOUT,
        validate_only=False,
    )


def growth(*names: str) -> Any:
    return grow.CreatePartitionsRequest(
        topics=tuple(grow.CreatePartitionsTopic(name=name, count=5, assignments=None) for name in names),
        timeout=TIMEOUT,
        validate_only=False,
    )


REQUESTS = pytest.mark.parametrize(
    ("request_for", "operation", "cost"),
    [
        pytest.param(deletion, Operation.DELETE, 3, id="delete"),
        pytest.param(growth, Operation.ALTER, 2, id="grow"),
        pytest.param(creation, Operation.CREATE, 4, id="create"),
    ],
)
EVERYTHING = [allowed(Operation.ALL, name) for name in ("payroll", "orders", "new")]
WHOLE_CLUSTER = [allowed(Operation.ALL, CLUSTER_NAME, Resource.CLUSTER), *EVERYTHING]


@REQUESTS
@pytest.mark.parametrize("quota", [False, True])
def test_a_name_twice_is_refused_and_goes_nowhere(
    request_for: Any, operation: Operation, cost: int, quota: bool
) -> None:
    for bindings in ([], EVERYTHING, WHOLE_CLUSTER):
        fleet = fleet_of("payroll")
        before, broker = fleet.image, Broker(fleet, *bindings)
        for name in ("payroll", "new"):
            assert broker.asked(request_for(name, name), quota=quota) == [(name, *DUPLICATE)]
        assert not broker.submitted and fleet.image is before and not broker.bucket.charged


@REQUESTS
def test_who_names_twice_what_he_may_not_is_in_the_audit_trail_once(
    request_for: Any, operation: Operation, cost: int
) -> None:
    broker = Broker(fleet_of("payroll"), allowed(Operation.DESCRIBE, "payroll"))
    broker.asked(request_for("payroll", "payroll", "payroll"))
    assert [(event.resource, event.reason) for event in broker.trail if event.verdict == "denied"] == [
        ("Topic:payroll", operation.name)
    ]


@REQUESTS
def test_a_quota_pays_for_what_is_submitted_only(request_for: Any, operation: Operation, cost: int) -> None:
    names = ("new", "new-too", "third") if request_for is creation else ("payroll", "orders", "third")
    broker = Broker(fleet_of("payroll", "orders", "third"), *(allowed(operation, name) for name in names[:2]),
                    *(allowed(Operation.DESCRIBE, name) for name in names))  # fmt: skip
    if request_for is creation:
        broker = Broker(fleet_of("payroll"), *(allowed(operation, name) for name in names[:2]))
    answer = broker.asked(request_for(names[2], "twice", "twice", names[0], names[1]), quota=True)
    assert {(name, code) for name, code, _ in answer} == {
        (names[2], UNAUTHORIZED),
        ("twice", Code.invalid_request),
        (names[0], Code.none),
        (names[1], Code.throttling_quota_exceeded),
    }
    assert broker.submitted == [names[0]] and broker.bucket.charged == [cost]


def test_the_name_of_the_metadata_log_goes_nowhere() -> None:
    broker = Broker(fleet_of(), *WHOLE_CLUSTER)
    ((_, code, message),) = broker.asked(creation("__cluster_metadata"))
    assert (code, message) == (Code.invalid_request, "Creation of internal topic __cluster_metadata is prohibited.")
    assert not broker.submitted


@pytest.mark.parametrize("operation", [Operation.READ, Operation.DESCRIBE, Operation.WRITE, Operation.ALTER])
def test_who_may_not_delete_deletes_nothing_that_this_broker_does_not_know_yet(operation: Operation) -> None:
    fleet = fleet_of()
    broker = Broker(fleet, allowed(operation, "pay"))
    fleet.create(NewTopic("pay", 1, 1))
    assert broker.asked(deletion("pay")) == [("pay", UNKNOWN, None)]
    assert "pay" in fleet.image.topics and not broker.submitted
    assert [(event.resource, event.reason) for event in broker.trail if event.verdict == "denied"] == [
        ("Topic:pay", "DELETE")
    ]


def test_who_may_delete_is_served_by_a_broker_that_does_not_know_yet() -> None:
    fleet = fleet_of()
    broker = Broker(fleet, allowed(Operation.DELETE, "pay"))
    fleet.create(NewTopic("pay", 1, 1))
    assert broker.asked(deletion("pay")) == [("pay", Code.none, None)]
    assert not fleet.image.topics


@pytest.mark.parametrize("catches_up", [False, True])
def test_an_id_that_this_broker_does_not_know_yet(catches_up: bool) -> None:
    fleet = fleet_of()
    broker = Broker(fleet, allowed(Operation.READ, "pay"), catches_up=catches_up)
    fleet.create(NewTopic("pay", 1, 1))
    topic_id = fleet.image.topics["pay"].id
    ((name, code, _),) = broker.asked(deletion(topic_id))
    assert (name, code) == (("pay", UNAUTHORIZED) if catches_up else (None, UNKNOWN_ID))
    assert "pay" in fleet.image.topics and not broker.submitted


def test_who_may_delete_deletes_by_an_id_that_this_broker_learns_on_the_way() -> None:
    fleet = fleet_of()
    broker = Broker(fleet, allowed(Operation.DELETE, "pay"), catches_up=True)
    fleet.create(NewTopic("pay", 1, 1))
    assert broker.asked(deletion(fleet.image.topics["pay"].id, uuid.UUID(int=9))) == [
        (None, UNKNOWN_ID, None),
        ("pay", Code.none, None),
    ]
    assert not fleet.image.topics


def test_an_id_twice() -> None:
    fleet = fleet_of("pay")
    topic_id = fleet.image.topics["pay"].id
    for bindings in ([], [allowed(Operation.DELETE, "pay")], WHOLE_CLUSTER):
        broker = Broker(fleet, *bindings)
        answer = broker.asked(deletion(topic_id, topic_id), quota=True)
        assert answer == [(None, Code.invalid_request, "Duplicate topic id.")]
        assert not broker.submitted and not broker.bucket.charged


def test_neither_name_nor_id_and_both() -> None:
    fleet = fleet_of("pay")
    both = delete.DeleteTopicState(name="pay", topic_id=fleet.image.topics["pay"].id)
    neither = delete.DeleteTopicState(name=None, topic_id=None)
    broker = Broker(fleet)
    answer = broker.asked(delete.DeleteTopicsRequest(topics=(both, neither), timeout=TIMEOUT))
    assert answer == [
        ("pay", Code.invalid_request, "You may not specify both topic name and topic id."),
        (None, Code.invalid_request, "Neither topic name nor id were specified."),
    ]
    assert not broker.submitted


def test_who_asks_by_an_id_is_not_told_the_name() -> None:
    fleet = fleet_of("payroll")
    topic_id = fleet.image.topics["payroll"].id
    call = call_of(0, 13)
    call.client = Client("SASL", "127.0.0.1", principal=BOB, authorizer=AclAuthorizer([]))
    access = topic_access(call, Operation.WRITE, fleet.image)
    assert access is not None
    produced = access.refused(topic_id.bytes)
    assert produced is not None and produced.code is UNAUTHORIZED and "payroll" not in str(produced)
    ((name, code, message),) = Broker(fleet).asked(deletion(topic_id))
    assert (name, code) == (None, UNAUTHORIZED) and "payroll" not in message


def test_an_id_that_was_not_known_stays_refused_for_the_whole_request() -> None:
    """Produce and Fetch do their work on a newer image than the one by which they were allowed to."""
    call = call_of(1, 17)
    call.client = Client("SASL", "127.0.0.1", principal=BOB, authorizer=AclAuthorizer([]))
    access = topic_access(call, Operation.READ, Image("test"))
    assert access is not None
    error = access.refused(uuid.UUID(int=9).bytes)
    assert error is not None and error.code is UNKNOWN_ID
