"""A node, by its roles.

node          what is started and stopped, in which order
foundation    log dirs and cluster id
quorum        metadata log, image, active controller
brokering     listeners, partitions, upkeep
membership    how a broker joins and leaves: alone, or in a fleet by heartbeats
fleet         everything that needs gRPC; not imported by a broker alone
"""

from ottla.node.node import Node

__all__ = ["Node"]
