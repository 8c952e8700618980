"""`KafkaTopic`: a topic of a KafkaCluster. Pure."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ottla_operator.resources.model import Column, Crd, Model, Quantity, Resource, Rule, Rules, Status

__all__ = ["ClusterRef", "KafkaTopic", "KafkaTopicSpec", "KafkaTopicStatus"]

TOPIC_NAME = "^[a-zA-Z0-9._-]+$"
PARTITIONS_MAX = 10_000
REPLICAS_MAX = 100


class ClusterRef(Model, frozen=True, kw_only=True):
    """A KafkaCluster in the same namespace."""

    name: Annotated[str, Meta(description="Its name.", min_length=1, max_length=63)]


class KafkaTopicSpec(Model, frozen=True, kw_only=True):
    """What the topic should be."""

    RULES: ClassVar[Rules] = (
        Rule("self.clusterRef == oldSelf.clusterRef", "a topic cannot move to another cluster"),
        Rule("has(self.topicName) == has(oldSelf.topicName)", "topicName cannot change: a topic has no other name"),
        Rule(
            "!has(self.topicName) || !has(oldSelf.topicName) || self.topicName == oldSelf.topicName",
            "topicName cannot change: a topic has no other name",
        ),
        Rule("self.partitions >= oldSelf.partitions", "partitions can only become more: records would be lost"),
    )

    cluster_ref: Annotated[ClusterRef, Meta(description="The KafkaCluster that the topic belongs to.")]
    topic_name: (
        Annotated[
            str,
            Meta(
                description="Name in Kafka, where it differs from the name of this object.",
                pattern=TOPIC_NAME,
                min_length=1,
                max_length=249,
            ),
        ]
        | None
    ) = None
    partitions: Annotated[int, Meta(description="Number of partitions.", ge=1, le=PARTITIONS_MAX)] = 1
    replicas: (
        Annotated[
            int,
            Meta(description="Replicas of each partition; without it, the cluster's default.", ge=1, le=REPLICAS_MAX),
        ]
        | None
    ) = None
    config: Annotated[
        dict[str, Quantity],
        Meta(
            description="Settings of the topic under Kafka's names, such as retention.ms; true and false in quotes.",
            max_length=64,
        ),
    ] = field(default_factory=dict)
    reclaim_policy: Annotated[
        Literal["Retain", "Delete"],
        Meta(description="What happens to the topic and its records when this object is deleted."),
    ] = "Retain"
    adopt: Annotated[
        bool,
        Meta(
            description="Take over a topic that exists already and is not this object's own: its settings become those "
            "of this object."
        ),
    ] = False


class KafkaTopicStatus(Status, frozen=True, kw_only=True):
    """What was last found out about the topic."""

    topic_name: Annotated[str, Meta(description="Name in Kafka.")] | None = None
    topic_id: Annotated[str, Meta(description="Id in Kafka.")] | None = None
    partitions: Annotated[int, Meta(description="Partitions that there are.")] | None = None
    replicas: Annotated[int, Meta(description="Replicas of a partition.")] | None = None


class KafkaTopic(Resource, frozen=True, kw_only=True):
    """A topic of a KafkaCluster."""

    RULES: ClassVar[Rules] = (
        Rule(
            "has(self.spec.topicName) || self.metadata.name.size() <= 249",
            "a topic's name has at most 249 characters; give a shorter one in topicName",
        ),
    )
    CRD: ClassVar[Crd] = Crd(
        kind="KafkaTopic",
        plural="kafkatopics",
        short_names=("kft",),
        columns=(
            Column("Cluster", ".spec.clusterRef.name"),
            Column("Partitions", ".spec.partitions", "integer"),
            Column("Replicas", ".status.replicas", "integer"),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
            Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: Annotated[KafkaTopicSpec, Meta(description="What the topic should be.")]
    status: Annotated[KafkaTopicStatus, Meta(description="What was last found out about the topic.")] | None = None

    @property
    def topic_name(self) -> str:
        return self.spec.topic_name or self.metadata.name
