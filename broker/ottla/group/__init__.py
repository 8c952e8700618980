"""Groups and their offsets: pure automata, and the shells that let them live in `__consumer_offsets`.

    api/k08 … k92      decode, ask, answer
    coordinator        this broker's shards; what it has in common with that of transactions is in `coordination`
    shard              the groups and offsets of one partition of the offsets topic, as long as this broker leads it
    classic*           PURE: groups of the JoinGroup protocol
    consumer*          PURE: groups of the ConsumerGroupHeartbeat protocol (KIP-848)
    share*             PURE: groups of the ShareGroupHeartbeat protocol (KIP-932), but for two shells:
    share_keeping      begins and ends the states of their partitions through the persister of `ottla.share`
    heartbeat_group, entries, epochs    PURE: what groups of heartbeats have in common
    offsets            PURE: the committed offsets of one group
    records            PURE: Kafka's formats in the offsets topic; a registry of record types

**One rule keeps state and log together.** Records are appended first; an append that is refused (KafkaError) changes
nothing. Then they are put in force here, at once, for whoever writes next. But nothing leaves this broker before it is
committed: answers wait for the record they tell of, and those who read (OffsetFetch) wait for the last record of the
group they read. A broker that loses the partition forgets the whole shard, answers NOT_COORDINATOR to all who wait, and
whoever leads next reads the log. So there is never anything to take back.

**Types of groups.** `shard.groups` maps a group's id to an object of any type that has what `group.Group` asks for.
A handler finds it by `call.node.groups.shard_of(group_id)` (KafkaError: NOT_COORDINATOR, or
COORDINATOR_LOAD_IN_PROGRESS; `shard_for_members` also INVALID_GROUP_ID) and `shard.groups.get(group_id)`. A group of
another type takes an old one's place by `shard.groups[group_id] = new`, and removes it by `del shard.groups[group_id]`,
after `shard.write` of the records that say so.

**Effects.** The methods of a group are pure: they get the time in seconds (monotonic, of this broker) as `now` and
return a list of effects, which `shard.perform(group, effects)` carries out in order: `Reply` answers a request that
waits, `Write` appends records and tells the group when they are committed, `Wake` asks for a call of `tick` at a time.

**Records.** `@record_type(key_version)` registers how a key of this version is read and put in force again while a
shard loads; `shard.write(records)` takes (key, value or None) pairs of bytes, and `shard.apply(records)` also puts them
in force here, as loading would.
"""
