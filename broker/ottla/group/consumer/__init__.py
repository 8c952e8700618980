"""Consumer groups: the protocol of ConsumerGroupHeartbeat (KIP-848), and classic members that are moving to it. Pure.

    group             the automaton as the shard sees it
    membership        its members: what the log says of them, and their deadlines
    heartbeat         the request: which group it is for, joining, going on, leaving
    advance           what a change of one member means: epoch, target assignment, the member's next step
    migration         a classic group becomes a consumer group, and back; classic_members: JoinGroup … in one
    state             what the log says, changed by its entries alone; records: Kafka's formats; member: the values
    assignors         of the server (range), with uniform_assignor; topics: ids, counts and racks from the metadata
    regex             expressions by RE2; topic_matching: what they match among the topics

Nothing but an entry of the log changes a group: a decision gives entries to write, and they are in force when appended.
"""
