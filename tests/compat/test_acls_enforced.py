"""Every API asked over SASL by users with and without ACLs: each answer is the one that Apache Kafka 4.1.1 gave."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.authorization_answers import recorded, settings
from support.authorization_cases import CASES, STATES, assert_same
from support.genuine import GenuineKafka
from support.ports import free_port
from support.process import BrokerProcess

KAFKA = json.loads((Path(__file__).parents[1] / "golden/authorization/kafka.json").read_text())


@pytest.fixture(scope="module")
def answers(make_broker: Callable[..., BrokerProcess]) -> dict[str, Any]:
    broker, sasl_port = make_broker(**{"group.initial.rebalance.delay.ms": "0"}), free_port()
    controller_port = broker._controller_port if isinstance(broker, GenuineKafka) else None
    broker.settings.update(settings(sasl_port, broker.port, controller_port))
    broker.start()
    return recorded(broker, sasl_port)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_refusals_over_sasl_are_kafkas(case: Any, answers: dict[str, Any]) -> None:
    for state in STATES:
        assert_same(case, state, answers[case.name][state], KAFKA[case.name][state])
