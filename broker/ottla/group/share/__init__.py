"""Share groups: the protocol of ShareGroupHeartbeat (KIP-932). Pure.

group            the state machine as the shard sees it
heartbeat        the request: finding the group, joining, staying, leaving
advance          the consequences of one member's change: epoch, target assignment
assignor         the `simple` assignor
state            the group's state as the log has it
initialization   which share-partitions have a state at the persister (`group.persisting` acts)
records          Kafka's formats
"""
