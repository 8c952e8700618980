"""Settings are refused before a node is restarted with them."""

import pytest
from ottla_operator.brokers.settings import refused_settings
from ottla_operator.manifests.config_map import config_map
from ottla_operator.plans.layout import plan_layout
from support.operator_samples import ZONES, cluster, zones_everywhere

ANYWHERE = [{"name": "internal", "type": "internal"}, {"name": "external", "type": "nodeport"}]


def _refusals(**spec) -> set[str | None]:
    one = cluster(**spec)
    ports = {("external", node_id): 30000 + node_id for node_id in (0, 100, 200)}
    made = config_map(one, plan_layout(one, [], zones_everywhere(*ZONES)), node_ports=ports, domain="cluster.local")
    return {refused_settings(text) for text in made["data"].values()}


@pytest.mark.parametrize("spec", [{}, {"listeners": ANYWHERE}, {"config": {"num.partitions": 3, "some.plugin": "x"}}])
def test_what_a_node_starts_with(spec):
    assert _refusals(**spec) == {None}


def test_a_bad_value_is_refused_as_the_node_would():
    (refusal,) = _refusals(config={"log.retention.hours": "many"})
    assert refusal == "spec.config: log.retention.hours=many: expected a number (int), such as the default 168"


def test_settings_that_do_not_fit_together():
    (refusal,) = _refusals(config={"replica.fetch.wait.max.ms": 50_000})
    assert refusal is not None and "replica.socket.timeout.ms" in refusal
