"""The partitions of this broker: roles, appends, replication, high watermarks and waiters.

A record is committed when all in-sync replicas have it; nothing above the high watermark is readable or acknowledged to
acks=all. The leader's high watermark moves in `core/isr`; `partition` notifies those who wait for it.

    host               applies metadata images: creates, opens, leads, follows and deletes partitions
    partition          one partition: its role, appends, high watermark, waiters
    stored             its log and disk: reads, flushes, deletions, truncation, disk failures
    commits            waiters for offsets to be committed
    core/isr           the leader's view of its followers: in-sync set and high watermark. Pure
    core/throttle      rates of throttled replicas (KIP-73). Pure; `throttling` applies them
    leader_stream      the leader's end of replication, a stream per follower; `sending` chooses what is sent
    follower_stream    the follower's end, a stream per leader; `copying` applies what arrives
    streams            the network as both need it
    replication        opens follower streams as the image says, checks followers that lag
    isr_changes        asks the controller to change in-sync sets
    batch_validation   decompresses and checks clients' batches; `serial_queue` keeps their order meanwhile
    nearest            the replica that a consumer should read from (KIP-392)
    lost_replicas      reports replicas in failed log dirs to the controller
    image_queue        images that wait to be applied
    settings           the current settings: the node's own under dynamic ones
    upkeep             retention, flushes, checkpoints, compaction, expiry of producers
"""
