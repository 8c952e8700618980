"""Groups and their offsets: pure automata, and the shards that let them live in `__consumer_offsets`.

    coordinator      every request of the API; this broker's shards (in common with others: `coordination`)
    shard            the groups and offsets of one partition of the offsets topic, as long as this broker leads it
    committing       offsets on their way into the log, also those of transactions
    persisting       reconciles the states of share-partitions, through the persister of `ottla.share`
    resolving        matches topics by regular expressions, away from the loop
    settings         the rules of groups, from the settings as they are now
    loading          what a shard reads from its log; offsets_topic: that topic
    member_memory    bounds what members of classic groups keep at this broker
    classic/         PURE: groups of the JoinGroup protocol
    consumer/        PURE: groups of the ConsumerGroupHeartbeat protocol (KIP-848)
    share/           PURE: groups of the ShareGroupHeartbeat protocol (KIP-932)
    heartbeats/      PURE: what groups of heartbeats have in common
    offsets/         PURE: committed and pending offsets, their expiry and records
    contract/        PURE: what a shard and every type of group expect of each other; the registry of record types

**One rule keeps state and log together.** Records are appended first; an append that is refused (KafkaError) changes
nothing. Then they are put in force here, at once, for whoever writes next. But nothing leaves this broker before it is
committed: answers wait for the record they depend on, and those who read (OffsetFetch) wait for the last record of the
group they read. A broker that loses the partition forgets the whole shard, answers NOT_COORDINATOR to all who wait, and
whoever leads next reads the log. So there is never anything to take back.

**Types of groups.** `shard.groups` maps a group's id to an object of any type that has what `contract.group.Group` asks
for. A group of another type takes an old one's place by `shard.adopt`, after the records that say so are appended.

**Effects.** The methods of a group are pure: they get the time in seconds (monotonic, of this broker) as `now` and
return a list of effects (`coordination.core.effects`), which `coordination.runner` performs in order.

**Records.** `@record_type(key_version)` registers how a key of this version is read and put in force again while a
shard loads; `shard.apply(records)` appends (key, value or None) pairs of bytes and puts them in force here, as loading
would.
"""
