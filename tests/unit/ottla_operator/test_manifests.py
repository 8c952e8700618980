"""Objects of a cluster: the parts that matter, and the settings of a node as golden text."""

import msgspec
from ottla_operator.manifests.config_map import config_map
from ottla_operator.manifests.names import SET_NAME_MAX, rack_label, set_name
from ottla_operator.manifests.server_properties import config_hash
from ottla_operator.manifests.services import services
from ottla_operator.manifests.stateful_set import BrokerImage, stateful_set
from ottla_operator.plans.comparison import covers, marked
from ottla_operator.plans.layout import NodeSet, plan_layout
from ottla_operator.plans.observed import record_of_claim, record_of_set
from support.operator_samples import ZONES, cluster, zones_everywhere

IMAGE = BrokerImage("broker:1", "Never")
EXTERNAL = [
    {"name": "external", "type": "nodeport", "advertisedHost": "127.0.0.1"},
    {"name": "internal", "type": "internal"},
]
DOMAIN = "cluster.local"
HOST = "events-main-{zone}-{id}.events-brokers.default.svc.cluster.local"

PROPERTIES = """\
advertised.listeners=INTERNAL://{b}:9092,EXTERNAL://127.0.0.1:30001
broker.rack=zone-b
cluster.id=bx1KUnweS2SKUg2dTxwrOg
controller.quorum.voters=0@{a}:9093,100@{b}:9093,200@{c}:9093
default.replication.factor=3
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=EXTERNAL:PLAINTEXT,INTERNAL:PLAINTEXT
listeners=EXTERNAL://:9094,INTERNAL://:9092
log.dirs=/var/lib/ottla/data
min.insync.replicas=1
node.id=100
num.partitions=4
offsets.topic.replication.factor=3
ottla.grpc.port=9093
ottla.health.port=8080
ottla.replication.port=9091
process.roles=broker,controller
share.coordinator.state.topic.min.isr=2
share.coordinator.state.topic.replication.factor=3
transaction.state.log.min.isr=2
transaction.state.log.replication.factor=3
"""


def _sample():
    one = cluster(listeners=EXTERNAL, config={"num.partitions": 4, "min.insync.replicas": 1})
    return one, plan_layout(one, [], zones_everywhere(*ZONES))


def test_settings_of_a_node():
    one, layout = _sample()
    ports = {("external", 100): 30001}
    made = config_map(one, layout, node_ports=ports, domain=DOMAIN)["data"]
    a, b, c = (HOST.format(zone=zone, id=number * 100) for number, zone in enumerate(ZONES))
    assert list(made) == [f"events-main-{zone}-{number * 100}.properties" for number, zone in enumerate(ZONES)]
    assert made["events-main-zone-b-100.properties"] == PROPERTIES.format(a=a, b=b, c=c)


def test_services():
    one, layout = _sample()
    made = {service["metadata"]["name"]: service["spec"] for service in services(one, layout)}
    assert set(made) == {"events-brokers", "events-bootstrap", *(f"events-external-{n}" for n in (0, 100, 200))}
    assert made["events-brokers"]["publishNotReadyAddresses"] and made["events-brokers"]["clusterIP"] == "None"
    assert [port["port"] for port in made["events-brokers"]["ports"]] == [9092, 9093, 9091]
    assert made["events-external-100"]["selector"] == {"statefulset.kubernetes.io/pod-name": "events-main-zone-b-100"}


def test_a_stateful_set_stays_in_its_zone_and_remembers_what_was_decided():
    one, layout = _sample()
    made = stateful_set(one, layout, layout.sets[1], image=IMAGE, domain=DOMAIN)
    spec, pod = made["spec"], made["spec"]["template"]["spec"]
    assert spec["ordinals"] == {"start": 100} and spec["replicas"] == 1
    assert spec["podManagementPolicy"] == "Parallel" and spec["updateStrategy"] == {"type": "OnDelete"}
    assert pod["terminationGracePeriodSeconds"] >= 60
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["zone-b"]
    claim = dict(spec["volumeClaimTemplates"][0])
    claim["metadata"] = {**claim["metadata"], "name": "data-events-main-zone-b-100"}
    record = record_of_set(made)
    assert record == record_of_claim(claim)
    assert record is not None and (record.zone, record.first_id, record.nodes) == ("zone-b", 100, 1)


def test_liveness_does_not_ask_for_a_quorum():
    one, layout = _sample()
    made = stateful_set(one, layout, layout.sets[0], image=IMAGE, domain=DOMAIN)
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_what_restarts_nodes():
    one, layout = _sample()
    base = config_hash(one, layout, layout.sets[0], domain=DOMAIN)
    changed = cluster(listeners=EXTERNAL, config={"num.partitions": 5, "min.insync.replicas": 1})
    elsewhere = cluster(
        listeners=[{**EXTERNAL[0], "advertisedHost": "example.com"}, EXTERNAL[1]],
        config={"num.partitions": 4, "min.insync.replicas": 1},
    )
    assert base == config_hash(one, layout, layout.sets[0], domain=DOMAIN)
    assert base != config_hash(changed, layout, layout.sets[0], domain=DOMAIN)
    assert base != config_hash(elsewhere, layout, layout.sets[0], domain=DOMAIN)


def test_a_controller_alone_has_no_listeners():
    pools = [
        {"name": "voters", "replicas": 3, "roles": ["controller"]},
        {"name": "brokers", "replicas": 3, "roles": ["broker"]},
    ]
    one = cluster(pools=pools)
    layout = plan_layout(one, [], zones_everywhere(*ZONES))
    files = config_map(one, layout, node_ports={}, domain=DOMAIN)["data"]
    voter, broker = files["events-voters-zone-a-0.properties"], files["events-brokers-zone-a-300.properties"]
    assert "listeners=" not in voter and "process.roles=controller\n" in voter
    assert "process.roles=broker\n" in broker and "300@" not in broker


def test_names_stay_short_and_apart():
    one = cluster()
    long = NodeSet(pool="p" * 20, zone="a-very-long-zone-name-of-some-provider-1", first_id=0, nodes=1)
    other = NodeSet(pool="p" * 20, zone="a-very-long-zone-name-of-some-provider-2", first_id=0, nodes=1)
    assert len(set_name(one, long)) <= SET_NAME_MAX
    assert set_name(one, long) != set_name(one, other)
    assert rack_label("zone-a") == "zone-a"
    assert rack_label("Zone_A").startswith("zone-a-") and rack_label("Zone_A") != rack_label("zone.A")


def test_what_is_right_is_not_applied_again():
    manifest = marked({"metadata": {"name": "x"}, "spec": {"ports": [{"port": 1}]}})
    live = {
        "metadata": {**manifest["metadata"], "uid": "1"},
        "spec": {"ports": [{"port": 1, "protocol": "TCP"}], "type": "ClusterIP"},
    }
    assert covers(live, manifest)
    assert not covers({**live, "spec": {"ports": []}}, manifest)
    assert not covers({**live, "spec": {"ports": [{"port": 2}]}}, manifest)
    assert marked({"metadata": {"name": "x"}, "spec": {}}) != manifest


def test_manifests_are_plain():
    one, layout = _sample()
    made = stateful_set(one, layout, layout.sets[0], image=IMAGE, domain=DOMAIN)
    assert msgspec.json.decode(msgspec.json.encode(made)) == made
