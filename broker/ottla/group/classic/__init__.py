"""Classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup. Pure.

group         the automaton as the shard sees it
rebalancing   owns the state of a group: generations, who is waited for, what follows; `states` is its table
roster        owns who belongs to it, who leads, which ids were given out
member        one member, its requests and answers
joining, syncing, leaving, static    the requests; they change the group by the methods of its owners alone
records       Kafka's formats; protocols, embedded_protocol: what members put into their requests
"""
