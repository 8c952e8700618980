"""Share groups (KIP-932): members share the records of a partition one by one, as of a queue.

    api/k76, k77       membership: `group.share`, in the offsets topic with the other groups
    api/k78, k79       ShareFetch and ShareAcknowledge
    api/k90 … k92      offsets of a group, for tools
    host               the share-partitions of this broker: those whose topic partition it leads
    hosted             one share-partition: its state machine, its log and its waiting fetches
    loading            loads a share-partition: reads its state, or initializes it
    fetching           waits until enough records are available, then acquires them
    locks              expires acquisition locks
    settings           a group's own settings
    persister          the client of the share coordinator: reads and writes states, here or on another broker
    coordinator        this broker's shards of `__share_group_state`, and that topic (see `coordination`)
    shard              the states of one partition of that topic, while this broker leads it
    core/partition     one share-partition: which records are available, acquired, acknowledged or archived
    core/in_flight     its in-flight records, as runs of records with the same state
    core/acknowledging acknowledgements as clients send them
    core/chunk         batches as read from the log, and which of them are for consumers
    core/sessions      share sessions: the partitions that a member fetches from this broker
    core/state         a share-partition's state as the log has it: a snapshot and later updates
    core/deciding      changes of that state, and their records
    core/records       Kafka's formats in the state topic
    core/questions     the persister's requests to the coordinator
    core/messages      the types of these requests, and the Persister protocol

**Acknowledged records are not delivered again.** An acknowledgement is answered when its state is committed in
`__share_group_state`. Acquisitions are not written: the partition's next leader finds acquired records available, with
the delivery counts written by then. An old leader is fenced by its leader epoch, a reset state by its state epoch.

`core` is pure: no clock, disk or network, neither its own nor imported.
"""
