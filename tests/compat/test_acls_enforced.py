"""Every API asked over SASL by users with and without ACLs: each answer is the one that Apache Kafka 4.1.1 gave."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.authorization_answers import login, recorded, settings
from support.authorization_cases import CASES, STATES, assert_same
from support.genuine import GenuineKafka
from support.ports import free_port
from support.process import BrokerProcess

KAFKA = json.loads((Path(__file__).parents[1] / "golden/authorization/kafka.json").read_text())


@pytest.fixture(scope="module")
def asked(
    make_broker: Callable[..., BrokerProcess], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    """The answers, and the audit trail of Ottla."""
    trail = tmp_path_factory.mktemp("audit") / "audit.log"
    broker, sasl_port = make_broker(**{"group.initial.rebalance.delay.ms": "0"}), free_port()
    if isinstance(broker, GenuineKafka):
        broker.settings.update(settings(sasl_port, broker.port, broker._controller_port))
    else:
        broker.settings.update(settings(sasl_port, broker.port), **{"ottla.audit.log.file": str(trail)})
    broker.start()
    answers = recorded(broker, sasl_port)
    with pytest.raises((AssertionError, ConnectionError)):
        login(sasl_port, "admin", "wr0ng-pass")
    broker.stop()
    return answers, trail


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_refusals_over_sasl_are_kafkas(case: Any, asked: tuple[dict[str, Any], Path]) -> None:
    for state in STATES:
        assert_same(case, state, asked[0][case.name][state], KAFKA[case.name][state])


def test_the_audit_trail_tells_who_was_refused_and_who_changed_what(
    asked: tuple[dict[str, Any], Path], request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--peer") != "ottla":
        pytest.skip("Kafka has none")
    texts = [asked[1].read_text(), asked[1].with_name(f"{asked[1].name}.strangers").read_text()]
    assert "wr0ng-pass" not in "".join(texts)
    lines, of_strangers = ([json.loads(line) for line in text.splitlines()] for text in texts)
    told = {(line["principal"], line["action"], line["resource"], line["verdict"]) for line in lines}
    assert ("User:produce-none", "produce", "Topic:orders", "denied") in told
    assert ("User:alter-users-wrong", "alter_user_scram_credentials", "Cluster:kafka-cluster", "denied") in told
    assert ("User:delete-topics-right", "delete_topics", "Topic:doomed-right", "allowed") in told
    assert ("User:admin", "create_topics", "Topic:new-super", "allowed") in told
    assert ("User:ANONYMOUS", "create_topics", "Topic:orders", "allowed") in told
    assert not [line for line in told if line[:2] == ("User:delete-topics-none", "delete_topics") and "allowed" in line]
    failed = [line for line in of_strangers if line["action"] == "login"]
    assert [(line["principal"], line["verdict"], line["reason"]) for line in failed] == [
        ("User:admin", "failed", "wrong password")
    ]
    assert not [line for line in lines if line["action"] == "login"]
    acls = [line["resource"] for line in lines if line["action"] == "create_acls" and line["verdict"] == "allowed"]
    assert acls[0].startswith("Acl:TOPIC LITERAL:orders ALLOW WRITE User:produce-right from *, Acl:")
