"""Share groups: the protocol of ShareGroupHeartbeat (KIP-932). Pure.

group        the automaton as the shard sees it
heartbeat    the request: which group it is for, joining, going on, leaving
advance      what a change of one member means: epoch, target assignment; assignor: who may take what
state        what the log says, changed by its entries alone; records: Kafka's formats
states       which share-partitions get a state at the persister, keep it or lose it (`group.persisting` acts)
"""
