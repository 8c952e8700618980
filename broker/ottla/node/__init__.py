"""A node, by its roles and loops.

node          what is started and stopped, in which order
foundation    log dirs and cluster id
quorum        metadata log, image, active controller
data          what lives on the data loop: brokering, and peers in a fleet
brokering     listeners, partitions, upkeep
membership    how a broker joins and leaves: alone, or in a fleet by heartbeats
joining       how a new node finds the voters of the fleet that it joins
fleet         quorum and control over gRPC, on the control loop; not imported by a broker alone
peers         replication and questions over gRPC, on the data loop; not imported by a broker alone
"""

from ottla.node.node import Node

__all__ = ["Node"]
