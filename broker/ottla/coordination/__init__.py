"""What the coordinators of groups, transactions and share groups have in common: state kept in an internal topic.

    coordinator        this broker's shards: which key belongs to which; loads and unloads them as the image changes
    shard              the state of one partition of the topic, while this broker leads it in one epoch
    loading            reads a shard from its log before any request is answered
    runner             performs effects; the only place where coordinators wait for commits and deadlines
    writing            turns records into batches: at once, or gathered per turn of the loop
    deadlines          of many state machines, on one timer
    computing          runs work that would hold the loop in a thread
    asking             requests between brokers
    internal_topic     creates the topic when the first client looks for its coordinator
    core/effects       what state machines return: Reply, Write, Wake, Send, Compute
    core/partitioning  which partition keeps a key
    core/records       keys and values that begin with their version

`group`, `txn` and `share` say what a shard holds and decide; this package imports none of them. `core` is pure.
"""
