"""Classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup. Pure.

group         the state machine as the shard sees it
rebalancing   owns the state of a group: generations, deadlines, assignments; `states` is its table of transitions
roster        owns the members, the leader, the static instances and the pending member ids
member        one member, its requests and answers
joining, syncing, leaving, static    the requests; they change the group through the methods of its owners only
records       Kafka's record formats
protocols, embedded_protocol    subscriptions and assignments, as members send them
"""
