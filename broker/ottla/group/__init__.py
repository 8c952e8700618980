"""Groups and their offsets: pure state machines, and the shards that keep them in `__consumer_offsets`.

    coordinator      every request of the API; this broker's shards (what coordinators share is in `coordination`)
    shard            the groups and offsets of one partition of the offsets topic, while this broker leads it
    committing       appends committed offsets to the log, also those of transactions
    persisting       reconciles the states of share-partitions, through the persister of `ottla.share`
    resolving        matches topics with regular expressions in a thread
    settings         the current rules of groups, from the settings
    loading          replays a shard's log
    offsets_topic    creates the offsets topic
    member_memory    bounds the memory that members of groups use at this broker
    classic/         PURE: groups of the JoinGroup protocol
    consumer/        PURE: groups of the ConsumerGroupHeartbeat protocol (KIP-848)
    share/           PURE: groups of the ShareGroupHeartbeat protocol (KIP-932)
    heartbeats/      PURE: what consumer and share groups have in common
    offsets/         PURE: committed and pending offsets, their expiry and records
    contract/        PURE: the interface between a shard and every type of group; the registry of record types

There is no `core/`: a type of group is a package of its own, so all packages here are pure and all modules act.

**One rule keeps state and log together.** Records are appended first; an append that is refused (KafkaError) changes
nothing. Appended records are applied at once, so the next request sees them. But nothing leaves this broker before it
is committed: answers wait for the record they depend on, and reads (OffsetFetch) wait for the last record of their
group. A broker that loses the partition drops the whole shard and answers NOT_COORDINATOR to all waiting requests; the
next leader replays the log. So nothing ever has to be rolled back.

**Types of groups.** `shard.groups` maps a group's id to an object that implements `contract.group.Group`. A group of
another type replaces it by `shard.adopt`, after the records of the change are appended.

**Effects.** The methods of a group are pure: they take the time in seconds (monotonic, of this broker) as `now` and
return a list of effects (`coordination.core.effects`), which `coordination.runner` performs in order.

**Records.** `@record_type(key_version)` registers how a record with a key of this version is decoded and replayed.
`shard.apply(records)` appends (key, value or None) pairs of bytes and replays them, as loading would.
"""
