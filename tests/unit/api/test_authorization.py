"""What every API answers to whom, beside what Apache Kafka 4.1.1 answers (tests/golden/authorization)."""

import asyncio
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.api.authorization import AUTHORIZATION, guarded
from ottla.api.authorizing import TOLD_MAX, may
from ottla.api.call import Call
from ottla.api.client import Client
from ottla.api.registry import load_all
from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import UpdateFeatures, UpgradeType
from ottla.net.shared import Shared
from ottla.security.core.access import Operation, Resource
from ottla.security.core.acls import AclAuthorizer
from ottla.security.core.audit import AuditEvent
from ottla.security.core.principals import Principal
from support.answers import settled
from support.authorization_cases import ADMIN, CASES, STATES, TOPICS, Case, assert_same, refusals, verdict
from support.calls import call_of, decoded, read
from support.nodes import InnerNode, until

KAFKA = json.loads((Path(__file__).parents[2] / "golden/authorization/kafka.json").read_text())
Verdicts = dict[str, dict[str, Any]]
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Trail:
    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def record(self, event: AuditEvent) -> None:
        self.events.append(event)


class Asked:
    """A broker in this process, asked without a connection: so the clients may be anybody."""

    def __init__(self, node: InnerNode, shared: Shared, ids: dict[str, uuid.UUID]) -> None:
        self.trail = Trail()
        self._node = node
        self._shared = shared
        self._ids = ids
        bindings = {binding for case in CASES for binding in case.bindings()}
        self._authorizer = AclAuthorizer(bindings, super_users={f"User:{ADMIN}"})

    async def without_an_authorizer(self, case: Case) -> Any:
        return await self._asked_by(Client("PLAINTEXT", "127.0.0.1"), case, "none")

    async def verdict(self, case: Case, state: str) -> Any:
        principal = Principal("User", case.user(state))
        client = Client("PLAINTEXT", "127.0.0.1", principal=principal, authorizer=self._authorizer, trail=self.trail)
        return await self._asked_by(client, case, state)

    async def _asked_by(self, client: Client, case: Case, state: str) -> Any:
        call = Call(self._shared.long_work, load_all()[case.key], case.version, 1, "test", client)
        request = read(case.request(state, self._ids))
        try:
            answer = await settled(self._shared.handlers[case.key](request, call))
        except KafkaError as error:
            answer = call.failure(error)
        finally:
            call.close()
        return verdict(decoded([_in_memory(part) for part in answer or ()], call))


def _in_memory(part: Any) -> bytes:
    """A connection reads records when they are sent."""
    return part.read(0, len(part)) if hasattr(part, "read") else bytes(part)


async def asked_all(folder: Path) -> tuple[Verdicts, Trail]:
    node = InnerNode(folder, 1, **SETTINGS)
    await node.start()
    try:
        ids = {topic: await node.make_topic(topic, partitions=1) for topic in TOPICS}
        assert node.node is not None and node.node._data is not None and node.node._quorum is not None
        upgrade = ("share.version", 1, UpgradeType.UPGRADE)
        await node.node._quorum.controller.submit(UpdateFeatures([upgrade]))
        shared = node.node._data.broker.shared
        assert shared is not None
        asked = Asked(node, shared, ids)
        coordinators = node.coordinators
        for coordinator in (coordinators.groups, coordinators.transactions, coordinators.share_states):
            await coordinator.leader_of("anybody")
            await until(lambda one=coordinator: one.shards and not any(x.loading for x in one.shards), "loaded")  # type: ignore[misc]
        answers = {case.name: {state: await asked.verdict(case, state) for state in STATES} for case in CASES}
        for case in CASES:
            if case.key in (29, 30, 31):
                answers[case.name]["no authorizer"] = await asked.without_an_authorizer(case)
        return answers, asked.trail
    finally:
        await node.stop()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Verdicts, Trail]:
    return asyncio.run(asked_all(tmp_path_factory.mktemp("node")))


@pytest.fixture
def trail() -> Trail:
    return Trail()


def each() -> Iterator[Any]:
    for case in CASES:
        for state in STATES:
            yield pytest.param(case, state, id=f"{case.name}-{state}")


@pytest.mark.parametrize(("case", "state"), list(each()))
def test_the_answer_is_kafkas(case: Case, state: str, answers: tuple[Verdicts, Trail]) -> None:
    assert_same(case, state, answers[0][case.name][state], KAFKA[case.name][state])


ONLY_FILTER = {"metadata-all", "list-groups", "list-transactions", "describe-partitions-all", "describe-cluster",
               "metadata-cluster"}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_has_no_acl_is_refused_and_who_has_all_is_not(case: Case, answers: tuple[Verdicts, Trail]) -> None:
    of_case = answers[0][case.name]
    if case.name not in ONLY_FILTER:
        assert refusals(of_case["none"]), of_case
        assert refusals(of_case["wrong"]), of_case
    assert not refusals(of_case["right"]) or case.name == "create-topics-unseen", of_case
    assert not refusals(of_case["super"]), of_case


def test_without_an_authorizer_there_are_no_acls(answers: tuple[Verdicts, Trail]) -> None:
    disabled = {"error_code": 54}
    assert answers[0]["describe-acls"]["no authorizer"] == disabled
    assert answers[0]["create-acls"]["no authorizer"] == {"results": [disabled]}
    assert answers[0]["delete-acls"]["no authorizer"] == {"filter_results": [disabled]}


def test_every_api_is_declared_and_tried() -> None:
    assert set(load_all()) <= set(AUTHORIZATION)
    assert {case.key for case in CASES} | {17, 18, 36, 38, 39, 40, 41} >= set(load_all())


def test_an_api_that_nobody_declared_stops_the_start() -> None:
    with pytest.raises(LookupError, match="API 127 is not in the table"):
        guarded(127, lambda request, call: None)


def test_refusals_are_written_down_and_questions_are_not(answers: tuple[Verdicts, Trail]) -> None:
    events = [event for event in answers[1].events if event.verdict == "denied"]
    refused = {(event.principal.name, event.action, event.resource, event.reason) for event in events}
    assert ("produce-none", "produce", "Topic:orders", "WRITE") in refused
    assert ("heartbeat-wrong", "heartbeat", "Group:g12", "READ") in refused
    assert not [event for event in events if event.principal.name.endswith(("admin", "list-groups-none"))]
    assert not [event for event in events if event.principal.name.startswith("metadata-all")]


def test_changes_are_written_down(answers: tuple[Verdicts, Trail]) -> None:
    changes = {(e.principal.name, e.action, e.resource) for e in answers[1].events if e.verdict == "allowed"}
    assert ("admin", "create_topics", "Topic:new-super") in changes
    assert not [each for each in changes if each[0] == "change-configs-right"], "it was only tried out"
    failed = {(e.principal.name, e.resource, e.reason) for e in answers[1].events if e.verdict == "failed"}
    assert ("alter-users-right", "User:nobody", "resource_not_found") in failed
    assert not [each for each in changes if each[0].endswith(("-none", "-wrong"))]


def test_a_request_that_names_very_many_things_is_told_of_so_many_times(trail: Trail) -> None:
    authorizer = AclAuthorizer()
    client = Client("PLAINTEXT", "127.0.0.1", authorizer=authorizer, trail=trail)
    call = call_of(20, 6)
    call.client = client
    for number in range(1000):
        assert not may(call, Operation.DELETE, Resource.TOPIC, f"t{number}")
    assert len(trail.events) == TOLD_MAX + 1
    assert trail.events[-1].resource == "… and more of the same request"
