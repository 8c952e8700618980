"""Labels and annotations of everything that the operator makes. Pure."""

from ottla_operator.resources.model import GROUP

__all__ = [
    "APPLICATION", "APPLIED", "ATTEMPT", "CLUSTER", "CLUSTER_ID",
    "CONFIG_HASH", "FIRST_NODE_ID", "LISTENER", "NODE_ID", "OWNS_TOPIC", "POOL", "RACK", "ZONE",
]  # fmt: skip

# Labels.
CLUSTER, POOL, RACK = f"{GROUP}/cluster", f"{GROUP}/pool", f"{GROUP}/rack"
NODE_ID, LISTENER = f"{GROUP}/node-id", f"{GROUP}/listener"

# Annotations: what is recorded once and never decided again …
ZONE, CLUSTER_ID, FIRST_NODE_ID = f"{GROUP}/zone", f"{GROUP}/cluster-id", f"{GROUP}/first-node-id"
# … what a pod was started with, and what was last applied.
CONFIG_HASH, APPLIED = f"{GROUP}/config-hash", f"{GROUP}/applied"

# Of a KafkaTopic: the fleet and the name of the topic that is its own.
OWNS_TOPIC = f"{GROUP}/owns-topic"

# Of a SparkApplication: its pods, and which run of the program a driver is.
APPLICATION, ATTEMPT = f"{GROUP}/application", f"{GROUP}/attempt"
