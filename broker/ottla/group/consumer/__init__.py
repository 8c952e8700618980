"""Consumer groups: the protocol of ConsumerGroupHeartbeat (KIP-848), and classic members that migrate to it. Pure.

    group             the state machine as the shard sees it
    membership        the members and their deadlines
    heartbeat         the request: finding the group, joining, staying, leaving
    advance           the consequences of one member's change: epoch, target assignment, the member's next step
    migration         a classic group becomes a consumer group, and back
    classic_members   JoinGroup, SyncGroup, Heartbeat and LeaveGroup in a consumer group
    state             the group's state as the log has it; records: Kafka's formats; member: the values
    targets           computes the target assignment
    assignors         the server's assignors (range); uniform_assignor: the other one
    topics            ids, partition counts and racks from the metadata image
    regex             regular expressions by RE2; topic_matching: which topics they match;
                      visible_topics: which of them a group may know of

Only entries of the log change a group: a decision returns entries to write, and they are applied when appended.
"""
