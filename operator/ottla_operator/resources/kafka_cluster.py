"""`KafkaCluster`: a fleet of brokers. Pure."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from ottla_operator.resources.model import (
    Column,
    Crd,
    FreeForm,
    Model,
    Quantity,
    Resource,
    Rule,
    Rules,
    Status,
    keyed_by,
)

__all__ = [
    "NODES_PER_POOL_MAX", "KafkaCluster", "KafkaClusterSpec", "KafkaClusterStatus", "Listener", "Pool", "Racks",
    "Resources", "RolloutStep", "Storage",
]  # fmt: skip

NODES_PER_POOL_MAX = 100
NAME = "^[a-z]([a-z0-9-]*[a-z0-9])?$"
CONTROLLERS = "self.pools.filter(p, 'controller' in p.roles).map(p, p.replicas).sum()"
# What the operator decides for each node: another value would tear the fleet apart.
OWN_SETTINGS = (
    "node.id", "broker.id", "process.roles", "cluster.id", "listeners", "advertised.listeners", "log.dirs", "log.dir",
    "listener.security.protocol.map", "inter.broker.listener.name", "controller.quorum.voters", "ottla.grpc.port",
    "controller.quorum.bootstrap.servers", "broker.rack", "ottla.health.port", "metadata.log.dir", "config.providers",
    "ottla.replication.port",
)  # fmt: skip


class Racks(Model, frozen=True, kw_only=True):
    """How the zones of the nodes become racks of brokers."""

    topology_key: Annotated[
        str,
        Meta(description="Label of Kubernetes' nodes whose values are the zones.", min_length=1, max_length=317),
    ] = "topology.kubernetes.io/zone"


class Storage(Model, frozen=True, kw_only=True):
    """Where a node of the pool keeps its data."""

    size: Annotated[
        str,
        Meta(
            description="Size of the volume of each node, such as 10Gi.",
            pattern="^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
            max_length=32,
        ),
    ] = "10Gi"
    storage_class: (
        Annotated[
            str,
            Meta(
                description="StorageClass of the volumes; without it, the default class of Kubernetes.", max_length=253
            ),
        ]
        | None
    ) = None


class Resources(Model, frozen=True, kw_only=True):
    """CPU and memory of a node's container."""

    requests: Annotated[
        dict[str, Quantity], Meta(description="What is reserved for a node, by cpu and memory.", max_length=16)
    ] = field(default_factory=dict)
    limits: Annotated[
        dict[str, Quantity], Meta(description="What a node may use at most, by cpu and memory.", max_length=16)
    ] = field(default_factory=dict)


class Pool(Model, frozen=True, kw_only=True):
    """Nodes of the same kind."""

    RULES: ClassVar[Rules] = (
        Rule("self.roles == oldSelf.roles", "the roles of a pool cannot change; add another pool"),
        Rule("self.storage == oldSelf.storage", "the storage of a pool cannot change; add another pool"),
        Rule(
            "'controller' in self.roles || self.replicas >= oldSelf.replicas",
            "replicas cannot shrink: brokers would have to be drained first, which this version does not do",
        ),
        Rule(
            "!('controller' in self.roles) || self.replicas == oldSelf.replicas",
            "replicas of a pool with the role controller cannot change: its nodes are the voters of the quorum",
        ),
    )

    name: Annotated[str, Meta(description="Name of the pool, unique in the cluster.", pattern=NAME, max_length=20)]
    roles: Annotated[
        tuple[Literal["broker", "controller"], ...],
        Meta(
            description="What its nodes do: serve clients (broker), vote on the metadata (controller), or both.",
            min_length=1,
            max_length=2,
            extra_json_schema={"x-kubernetes-list-type": "set"},
        ),
    ] = ("broker", "controller")
    replicas: Annotated[
        int,
        Meta(
            description="Number of nodes, spread evenly over the zones.",
            ge=1,
            le=NODES_PER_POOL_MAX,
        ),
    ] = 3
    storage: Annotated[Storage, Meta(description="Where each node keeps its data.")] = Storage()
    resources: Annotated[Resources, Meta(description="CPU and memory of each node.")] = Resources(
        requests={"cpu": "100m", "memory": "256Mi"}  # without any, a busy machine would starve a broker first
    )
    tolerations: Annotated[
        tuple[FreeForm, ...], Meta(description="Tolerations of the pods, as in Kubernetes.", max_length=32)
    ] = ()


class Listener(Model, frozen=True, kw_only=True):
    """A way in for clients."""

    RULES: ClassVar[Rules] = (
        Rule(
            "self.type == 'nodeport' || !has(self.advertisedHost)",
            "advertisedHost belongs to listeners of type nodeport; an internal listener advertises the pods' names",
        ),
        Rule("self.type == oldSelf.type", "the type of a listener cannot change; add another listener"),
    )

    name: Annotated[
        str,
        Meta(description="Name of the listener, unique in the cluster.", pattern="^[a-z][a-z0-9]*$", max_length=15),
    ]
    type: Annotated[
        Literal["internal", "nodeport"],
        Meta(
            description="`internal`: for pods, on port 9092. `nodeport`: one Service per broker, for clients outside."
        ),
    ]
    advertised_host: (
        Annotated[
            str,
            Meta(
                description="Host that brokers advertise for a nodeport listener; without it, the address of the node.",
                min_length=1,
                max_length=253,
            ),
        ]
        | None
    ) = None


class KafkaClusterSpec(Model, frozen=True, kw_only=True):
    """What the fleet should be."""

    RULES: ClassVar[Rules] = (
        Rule(
            f"{CONTROLLERS} in [1, 3, 5]",
            "the pools with the role controller must have 1, 3 or 5 replicas together",
        ),
        Rule("self.pools.exists(p, 'broker' in p.roles)", "at least one pool needs the role broker"),
        Rule("has(self.racks) == has(oldSelf.racks)", "spec.racks cannot be added or removed: data would have to move"),
        Rule(
            "oldSelf.pools.all(o, self.pools.exists(p, p.name == o.name))",
            "a pool cannot be removed: its brokers would have to be drained first, which this version does not do",
        ),
        Rule(
            "self.pools.all(p, !('controller' in p.roles) || oldSelf.pools.exists(o, o.name == p.name))",
            "a pool with the role controller cannot be added: the voters of the quorum stay the same",
        ),
        Rule(
            "self.listeners.filter(l, l.type == 'internal').size() == 1",
            "exactly one listener must have the type internal: brokers and pods connect to it",
        ),
        Rule(
            f"!has(self.config) || !self.config.exists(k, k in {list(OWN_SETTINGS)})",
            "spec.config must not set what the operator decides for each node: ids, roles, listeners, directories, "
            "racks and voters",
        ),
    )

    racks: (
        Annotated[Racks, Meta(description="Spread the nodes over zones; without it, over nothing in particular.")]
        | None
    ) = None
    pools: Annotated[
        tuple[Pool, ...],
        keyed_by("name"),
        Meta(description="The nodes, by kind.", min_length=1, max_length=10),
    ]
    config: Annotated[
        dict[str, Quantity],
        Meta(
            description="Settings of all nodes under Kafka's names, such as num.partitions; true and false in quotes.",
            max_length=256,
        ),
    ] = field(default_factory=dict)
    listeners: Annotated[
        tuple[Listener, ...], keyed_by("name"), Meta(description="Ways in for clients.", min_length=1, max_length=6)
    ] = (Listener(name="internal", type="internal"),)
    image: (
        Annotated[str, Meta(description="Image of the brokers; without it, the operator's default.", max_length=1024)]
        | None
    ) = None


class RolloutStep(Model, frozen=True, kw_only=True):
    """One pod that is to be restarted."""

    pod: Annotated[str, Meta(description="Its name.")]
    reason: Annotated[str, Meta(description="Why it is to be restarted.")]
    verdict: Annotated[str, Meta(description="Restarting, Waiting or Blocked.")]
    blocked_by: Annotated[tuple[str, ...], Meta(description="What speaks against it now.")] = ()


class ListenerStatus(Model, frozen=True, kw_only=True):
    """Where clients begin."""

    name: Annotated[str, Meta(description="Of the listener.")]
    bootstrap_servers: Annotated[str, Meta(description="For the setting bootstrap.servers of clients.")]


class KafkaClusterStatus(Status, frozen=True, kw_only=True):
    """What was last found out about the fleet."""

    cluster_id: Annotated[str, Meta(description="Id of the fleet, kept on its volumes.")] | None = None
    nodes: Annotated[int, Meta(description="Nodes that should be.")] | None = None
    nodes_ready: Annotated[int, Meta(description="Nodes that are ready.")] | None = None
    listeners: Annotated[tuple[ListenerStatus, ...], Meta(description="Where clients begin.")] = ()
    rollout: Annotated[tuple[RolloutStep, ...], Meta(description="Pods that are to be restarted, next one first.")] = ()


class KafkaCluster(Resource, frozen=True, kw_only=True):
    """A fleet of brokers that speaks Kafka's protocol."""

    RULES: ClassVar[Rules] = (
        Rule(
            "self.metadata.name.size() <= 30 && self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",
            "the name of a KafkaCluster has at most 30 characters, begins with a letter, and has no dots",
        ),
    )
    CRD: ClassVar[Crd] = Crd(
        kind="KafkaCluster",
        plural="kafkaclusters",
        short_names=("kfc",),
        columns=(
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Nodes", ".status.nodes", "integer"),
            Column("Up", ".status.nodesReady", "integer", "Nodes that are ready"),
            Column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
            Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
            Column("Bootstrap", ".status.listeners[0].bootstrapServers", priority=1),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: Annotated[KafkaClusterSpec, Meta(description="What the fleet should be.")]
    status: Annotated[KafkaClusterStatus, Meta(description="What was last found out about the fleet.")] | None = None
