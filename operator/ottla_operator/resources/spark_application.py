"""`SparkApplication`: a Spark program that runs against a KafkaCluster. Pure.

Fields that Kubeflow's v1beta2 has are named as there.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ottla_operator.resources.kafka_topic import ClusterRef
from ottla_operator.resources.model import Column, Crd, FreeForm, Model, Quantity, Resource, Rule, Rules, Status

__all__ = [
    "Checkpoint", "CheckpointVolume", "Driver", "Executor", "Kafka", "RestartPolicy", "SparkApplication",
    "SparkApplicationSpec", "SparkApplicationStatus",
]  # fmt: skip

MEMORY = "^[1-9][0-9]*[kmgt]$"
# Decided for each application, since executors must find their driver.
OWN_SETTINGS = (
    "spark.master", "spark.submit.deployMode", "spark.kubernetes.namespace", "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.executor.podTemplateFile", "spark.driver.host", "spark.driver.port", "spark.driver.bindAddress",
    "spark.driver.blockManager.port",
)  # fmt: skip
Labels = Annotated[dict[str, str], Meta(description="Further labels of its pods.", max_length=32)]
Env = Annotated[tuple[FreeForm, ...], Meta(description="Environment, as in a Pod's container.", max_length=64)]
Tolerations = Annotated[tuple[FreeForm, ...], Meta(description="As in a Pod.", max_length=32)]
NodeSelector = Annotated[dict[str, str], Meta(description="Labels that its nodes must have.", max_length=32)]
Cores = Annotated[int, Meta(description="Tasks at a time, and CPUs asked for without coreRequest.", ge=1, le=256)]
CoreRequest = Annotated[Quantity, Meta(description="CPU to ask Kubernetes for, such as 500m.")] | None
Memory = Annotated[str, Meta(description="Of its JVM, such as 512m or 2g.", pattern=MEMORY, max_length=12)]


class Driver(Model, frozen=True, kw_only=True):
    """The pod that runs the program."""

    cores: Cores = 1
    core_request: CoreRequest = None
    memory: Memory = "1g"
    service_account: (
        Annotated[
            str,
            Meta(
                description="Runs as this one, which may make pods, services, config maps and volume claims here; "
                "without it, one is made.",
                max_length=253,
            ),
        ]
        | None
    ) = None
    env: Env = ()
    labels: Labels = field(default_factory=dict)
    annotations: Annotated[dict[str, str], Meta(description="Of its pod.", max_length=32)] = field(default_factory=dict)
    node_selector: NodeSelector = field(default_factory=dict)
    tolerations: Tolerations = ()


class Executor(Model, frozen=True, kw_only=True):
    """The pods that do its work; Spark makes them."""

    instances: Annotated[int, Meta(description="How many.", ge=1, le=1000)] = 1
    cores: Cores = 1
    core_request: CoreRequest = None
    memory: Memory = "1g"
    env: Env = ()
    labels: Labels = field(default_factory=dict)
    annotations: Annotated[dict[str, str], Meta(description="Of its pods.", max_length=32)] = field(
        default_factory=dict
    )
    node_selector: NodeSelector = field(default_factory=dict)
    tolerations: Tolerations = ()


class RestartPolicy(Model, frozen=True, kw_only=True):
    """Whether the program is run again when it has ended."""

    type: Annotated[
        Literal["Never", "OnFailure", "Always"],
        Meta(description="Always starts it again also when it has succeeded."),
    ] = "Never"
    on_failure_retries: Annotated[
        int, Meta(description="How often a program that failed is run again.", ge=0, le=1000)
    ] = 3
    on_failure_retry_interval: Annotated[int, Meta(description="Seconds before it is.", ge=0, le=86400)] = 5


class Kafka(Model, frozen=True, kw_only=True):
    """The fleet that the program works with: its bootstrap servers are in the environment as OTTLA_BOOTSTRAP_SERVERS
    and in the setting spark.ottla.kafka.bootstrap.servers.
    """

    cluster_ref: Annotated[ClusterRef, Meta(description="The program waits until this KafkaCluster is ready.")]
    topics: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=249)], ...],
        Meta(description="The program waits until these topics exist.", max_length=100),
    ] = ()


class CheckpointVolume(Model, frozen=True, kw_only=True):
    """A volume claim: one that there is, or one to be made, which outlives the application."""

    RULES: ClassVar[Rules] = (
        Rule("has(self.claimName) != has(self.size)", "a checkpoint volume has either claimName or size"),
    )

    claim_name: Annotated[str, Meta(description="A PersistentVolumeClaim that there is.", max_length=253)] | None = None
    size: Annotated[Quantity, Meta(description="Size of the claim to be made.")] | None = None
    storage_class_name: Annotated[str, Meta(description="Its storage class.", max_length=253)] | None = None
    access_mode: Annotated[
        Literal["ReadWriteOnce", "ReadWriteMany"],
        Meta(description="ReadWriteOnce keeps driver and executors on one node."),
    ] = "ReadWriteOnce"


class Checkpoint(Model, frozen=True, kw_only=True):
    """Where streams keep their state, so that a program that is run again goes on where it was."""

    volume: Annotated[CheckpointVolume, Meta(description="Mounted in the driver and the executors.")]
    path: Annotated[str, Meta(description="Where it is mounted.", pattern="^/[^:]+$", max_length=253)] = "/checkpoint"


class SparkApplicationSpec(Model, frozen=True, kw_only=True):
    """What is to be run, and how."""

    RULES: ClassVar[Rules] = (
        Rule(
            "self.type == 'Python' || has(self.mainClass)",
            "a Java or Scala program needs mainClass",
        ),
        Rule(
            f"!has(self.sparkConf) || !self.sparkConf.exists(k, k in {list(OWN_SETTINGS)})",
            "spec.sparkConf must not set what the operator decides: master, namespace, pod names, driver address",
        ),
    )

    type: Annotated[Literal["Python", "Java", "Scala"], Meta(description="Language of the program.")] = "Python"
    mode: Annotated[Literal["cluster"], Meta(description="The driver runs in a pod.")] = "cluster"
    image: (
        Annotated[str, Meta(description="Image of all its pods; without it, the operator's default.", max_length=1024)]
        | None
    ) = None
    image_pull_policy: (
        Annotated[Literal["Always", "IfNotPresent", "Never"], Meta(description="As in a Pod.")] | None
    ) = None
    main_application_file: Annotated[
        str,
        Meta(
            description="The program, such as local:///opt/ottla/spark-apps/ottla_pipelines/sessions.py.",
            min_length=1,
            max_length=1024,
        ),
    ]
    main_class: Annotated[str, Meta(description="Of a Java or Scala program.", max_length=1024)] | None = None
    arguments: Annotated[tuple[str, ...], Meta(description="Of the program.", max_length=256)] = ()
    spark_conf: Annotated[
        dict[str, Annotated[str, Meta(max_length=4096)]], Meta(description="Settings of Spark.", max_length=256)
    ] = field(default_factory=dict)
    driver: Annotated[Driver, Meta(description="The pod that runs the program.")] = Driver()
    executor: Annotated[Executor, Meta(description="The pods that do its work; Spark makes them.")] = Executor()
    restart_policy: Annotated[
        RestartPolicy, Meta(description="Whether the program is run again when it has ended.")
    ] = RestartPolicy()
    kafka: Annotated[Kafka, Meta(description="The fleet that the program works with.")] | None = None
    checkpoint: Annotated[Checkpoint, Meta(description="Where streams keep their state.")] | None = None


class ApplicationState(Model, frozen=True, kw_only=True):
    """How far it is."""

    state: Annotated[str, Meta(description="New, Waiting, Submitted, Running, Completed, PendingRerun, Failed …")]
    error_message: Annotated[str, Meta(description="Why the last run failed, with its last words.")] | None = None


class DriverInfo(Model, frozen=True, kw_only=True):
    """The driver's pod."""

    pod_name: Annotated[str, Meta(description="Its name.")]


class SparkApplicationStatus(Status, frozen=True, kw_only=True):
    """What was last found out about the application."""

    application_state: Annotated[ApplicationState, Meta(description="How far it is.")] = ApplicationState(state="New")
    execution_attempts: Annotated[int, Meta(description="How often the program was run for this spec.")] = 0
    driver_info: Annotated[DriverInfo, Meta(description="The driver's pod.")] | None = None
    executors: Annotated[int, Meta(description="Executors that run.")] | None = None
    last_submission_attempt_time: Annotated[str, Meta(description="When its driver was last made.")] | None = None
    termination_time: Annotated[str, Meta(description="When its driver last ended.")] | None = None


class SparkApplication(Resource, frozen=True, kw_only=True):
    """A Spark program that runs in pods, against a KafkaCluster if it wants one."""

    RULES: ClassVar[Rules] = (
        Rule(
            "self.metadata.name.size() <= 45 && self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",
            "the name of a SparkApplication has at most 45 characters, begins with a letter, and has no dots",
        ),
    )
    CRD: ClassVar[Crd] = Crd(
        kind="SparkApplication",
        plural="sparkapplications",
        short_names=("sparkapp",),
        columns=(
            Column("Cluster", ".spec.kafka.clusterRef.name"),
            Column("State", ".status.applicationState.state"),
            Column("Attempts", ".status.executionAttempts", "integer"),
            Column("Executors", ".status.executors", "integer"),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
            Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: Annotated[SparkApplicationSpec, Meta(description="What is to be run, and how.")]
    status: (
        Annotated[SparkApplicationStatus, Meta(description="What was last found out about the application.")] | None
    ) = None
