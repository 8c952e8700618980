"""What the coordinators of groups, transactions and share groups have in common: state that lives in an internal topic.

    coordinator        this broker's shards: which key belongs to which, loading and unloading as the image says
    shard              the state of one partition of the topic, for as long as this broker leads it in one epoch
    loading            a shard is read from its log before anybody is answered
    writing            what a shard writes: gathered per turn of the loop, appended, answered after commit
    asking             questions between brokers: who reaches whom, and what this broker answers
    internal_topic     the topic, made when the first client asks for its coordinator
    core/partitioning  which partition keeps a key
    core/records       keys and values that begin with their version

`group`, `txn` and `share` say what a shard holds and how it is decided. None of them is known here. `core` is pure.
"""
