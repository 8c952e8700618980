"""gRPC between nodes: one server per node, one channel per peer. Services: quorum, replication, control."""
