"""What the coordinators of groups, transactions and share groups have in common: state that lives in an internal topic.

    coordinator        this broker's shards: which key belongs to which, loading and unloading as the image says
    shard              the state of one partition of the topic, for as long as this broker leads it in one epoch
    loading            a shard is read from its log before anybody is answered
    runner             performs what automata ask for; the only place that waits, for commits and for deadlines
    writing            records become batches: at once, or gathered per turn of the loop
    deadlines          of many automata, on one timer
    asking             questions between brokers: who reaches whom, and what this broker answers
    internal_topic     the topic, made when the first client asks for its coordinator
    core/effects       what automata ask for: Reply, Write, Wake, Send, Compute
    core/partitioning  which partition keeps a key
    core/records       keys and values that begin with their version

`group`, `txn` and `share` say what a shard holds and how it is decided. None of them is known here. `core` is pure.
"""
