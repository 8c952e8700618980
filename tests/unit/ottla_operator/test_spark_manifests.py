"""The objects of a SparkApplication."""

import json

import pytest
import yaml
from ottla_operator.manifests.spark_checkpoint import checkpoint_claim
from ottla_operator.manifests.spark_config import config_map, spark_properties
from ottla_operator.manifests.spark_driver_access import driver_account, driver_role, driver_role_binding
from ottla_operator.manifests.spark_driver_pod import driver_pod
from ottla_operator.manifests.spark_driver_service import driver_service
from ottla_operator.manifests.spark_memory import pod_memory_mib
from ottla_operator.manifests.spark_names import bootstrap_servers
from support.spark_samples import RUNTIME, UID, application

CHECKPOINT = {"volume": {"size": "1Gi"}}


def container(one):
    return driver_pod(one, RUNTIME, attempt=1)["spec"]["containers"][0]


def test_the_driver_is_spark_submit_with_a_file_of_settings():
    one = application(arguments=["--until", "2026-01-06"], mainClass="dev.Main", type="Java")
    assert container(one)["args"] == [
        *("driver", "--properties-file", "/etc/ottla-spark/spark.properties", "--class", "dev.Main"),
        *("local:///opt/app.py", "--until", "2026-01-06"),
    ]


def test_executors_find_their_driver_and_belong_to_it():
    properties = spark_properties(application(), RUNTIME)
    service, pod = driver_service(application()), driver_pod(application(), RUNTIME, attempt=1)
    assert properties["spark.driver.host"] == "sessions-driver.default.svc.cluster.local"
    assert properties["spark.kubernetes.driver.pod.name"] == pod["metadata"]["name"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    ports = {str(port["containerPort"]) for port in pod["spec"]["containers"][0]["ports"]}
    assert ports == {properties["spark.driver.port"], properties["spark.driver.blockManager.port"]}


def test_the_persons_settings_win_over_defaults_but_not_over_what_must_be():
    conf = {"spark.executor.memory": "3g", "spark.sql.shuffle.partitions": "7", "spark.driver.host": "elsewhere"}
    properties = spark_properties(application(sparkConf=conf), RUNTIME)
    assert properties["spark.executor.memory"] == "3g" and properties["spark.sql.shuffle.partitions"] == "7"
    assert properties["spark.driver.host"] != "elsewhere"


def test_settings_are_written_as_java_reads_them():
    text = config_map(application(sparkConf={"a b": " c\\d\ne"}), RUNTIME)["data"]["spark.properties"]
    assert "a\\ b=\\ c\\\\d\\ne\n" in text


def test_bootstrap_servers_are_injected_everywhere():
    one = application(kafka={"clusterRef": {"name": "events"}})
    assert bootstrap_servers(one, domain="cluster.local") == "events-bootstrap.default.svc.cluster.local:9092"
    assert bootstrap_servers(application(), domain="cluster.local") == ""
    assert spark_properties(one, RUNTIME)["spark.ottla.kafka.bootstrap.servers"] == RUNTIME.bootstrap
    variable = {"name": "OTTLA_BOOTSTRAP_SERVERS", "value": RUNTIME.bootstrap}
    assert variable in container(one)["env"]
    assert variable in template(one)["spec"]["containers"][0]["env"]


def template(one):
    return yaml.safe_load(config_map(one, RUNTIME)["data"]["executor.yaml"])


def test_the_checkpoint_is_mounted_in_driver_and_executors_and_outlives_the_application():
    one = application(checkpoint=CHECKPOINT)
    pod = driver_pod(one, RUNTIME, attempt=1)
    for spec in (pod["spec"], template(one)["spec"]):
        volumes = [volume for volume in spec["volumes"] if volume["name"] == "checkpoint"]
        assert volumes == [{"name": "checkpoint", "persistentVolumeClaim": {"claimName": "sessions-checkpoint"}}]
        assert {"name": "checkpoint", "mountPath": "/checkpoint"} in spec["containers"][0]["volumeMounts"]
        assert spec["securityContext"]["fsGroup"]
    claim = checkpoint_claim(one)
    assert claim["metadata"]["name"] == "sessions-checkpoint" and "ownerReferences" not in claim["metadata"]
    assert claim["spec"]["resources"]["requests"] == {"storage": "1Gi"}


def test_no_claim_is_made_for_one_that_there_is():
    assert checkpoint_claim(application(checkpoint={"volume": {"claimName": "mine"}})) is None
    assert checkpoint_claim(application()) is None


def test_everything_else_goes_with_the_application():
    one = application()
    made = [
        driver_pod(one, RUNTIME, attempt=1),
        driver_service(one),
        config_map(one, RUNTIME),
        driver_account(one),
        driver_role(one),
        driver_role_binding(one),
    ]
    for manifest in made:
        owners = manifest["metadata"]["ownerReferences"]
        assert [(owner["kind"], owner["uid"], owner["controller"]) for owner in owners] == [
            ("SparkApplication", UID, True)
        ]
        json.dumps(manifest)


def test_attempts_differ():
    assert driver_pod(application(), RUNTIME, attempt=3)["metadata"]["annotations"]["ottla.dev/attempt"] == "3"


def test_executors_get_no_token_and_the_persons_labels_cannot_hide_ours():
    one = application(executor={"labels": {"ottla.dev/application": "other", "team": "a"}})
    made = template(one)
    assert made["spec"]["automountServiceAccountToken"] is False
    assert made["metadata"]["labels"]["ottla.dev/application"] == "sessions"
    assert made["metadata"]["labels"]["team"] == "a"


@pytest.mark.parametrize(
    ("heap", "language", "mib"),
    [("512m", "Python", 896), ("1g", "Python", 1433), ("4g", "Java", 4505), ("2g", "Scala", 2432)],
)
def test_memory_of_a_pod_is_the_heap_and_what_lives_beside_it(heap, language, mib):
    assert pod_memory_mib(heap, language=language) == mib


def test_resources_of_the_driver():
    one = application(driver={"cores": 2, "memory": "512m", "coreRequest": "100m"})
    assert container(one)["resources"] == {
        "requests": {"cpu": "100m", "memory": "896Mi"},
        "limits": {"memory": "896Mi"},
    }
    assert container(application(driver={"cores": 2}))["resources"]["requests"]["cpu"] == "2"
