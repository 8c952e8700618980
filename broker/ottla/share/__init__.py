"""Share groups (KIP-932): members share the records of a partition one by one, as of a queue.

    api/k76, k77       membership: `group.share_*`, in the offsets topic with the other groups
    api/k78, k79       records out, acknowledgements in
    api/k90 … k92      offsets of a group, for tools
    host               the share-partitions that this broker serves, because it leads the partition of the topic
    hosted, loading    one of them: the automaton, its log and who waits for it; where it begins
    fetching, locks    waiting until there is enough, and acquiring it; when locks expire
    settings           what a group sets for itself
    persister          where the state of a share-partition is kept: asks the broker that coordinates it
    coordinator        this broker's part of `__share_group_state`; what coordinators have in common: `coordination`
    shard              the states of one partition of that topic, as long as this broker leads it
    state_topic        that topic, made when the first one asks for its coordinator
    core/partition     one share-partition: which record is available, acquired, acknowledged or archived
    core/in_flight     its records as runs that fare alike
    core/acknowledging acknowledgements as clients send them
    core/chunk         batches as they were read, and which of them are for consumers
    core/sessions      what a member fetches from this broker, between its requests
    core/state         a share-partition's state as the log has it: a snapshot and what came after
    core/deciding      how that state changes, and the record that says so
    core/records       Kafka's formats in the state topic
    core/questions     what the persister asks, by method
    core/messages      what is kept of a share-partition, and the Persister's contract
    core/keys          the text that names a share-partition, as FindCoordinator brings it

**What is acknowledged is not delivered again.** An acknowledgement is answered after the state that says so is
committed in `__share_group_state`. Acquired records are not written: who leads the partition next finds them available,
with the deliveries that were counted by then. A leader is fenced by its epoch, and a state that was reset by its epoch.

`core` is pure: no clock, disk or network, neither its own nor imported.
"""
