"""Share groups: the protocol of ShareGroupHeartbeat (KIP-932). Pure.

group        the automaton as the shard sees it
heartbeat    the request: which group it is for, joining, going on, leaving
advance      what a change of one member means: epoch, target assignment; assignor: who may take what
state        what the log says of one group; only entries of the log change it
records      Kafka's formats
initialization   which share-partitions have a state at the persister (`group.persisting` acts)
"""
