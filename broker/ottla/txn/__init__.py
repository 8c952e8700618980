"""Transactions: a pure state machine, and the coordinator that keeps it in `__transaction_state`.

    api/k22 … k66      the requests of clients
    coordinator        this broker's shards of the state topic, and that topic (see `coordination`)
    shard              the transactions of one partition of the state topic, while this broker leads it
    timeouts           aborts transactions that exceed their transaction.timeout.ms
    marker_sender      sends markers to the leaders of a transaction's partitions until all have written them
    marker_writer      writes markers into partitions that this broker leads
    exchange           requests between brokers
    verifying          a partition's leader asks the coordinator before it appends a transaction's first batch
    core/states        the table of states and events
    core/transaction   one transactional id, and its change by each event
    core/deciding      requests to decisions
    core/messages      the types of requests between brokers
    core/records       Kafka's formats in the state topic

**The log is the state.** A decision's record is appended first; if that is refused, nothing changes. An appended record
is applied at once, but nothing leaves this broker before the record is committed: answers wait for the last record of
their transaction, and markers are sent when the decision to end it (PrepareCommit, PrepareAbort) is committed. A broker
that loses the partition drops the shard; the next leader replays the log, finds transactions in a Prepare state and
sends their markers again. Writing a marker twice does no harm.

**Two flows.** Clients of the old flow add partitions themselves and keep their epoch. With `transaction.version` 2
(KIP-890) the partitions' leaders add them, and the epoch is bumped at every end, so that a late message of one
transaction cannot enter the next.

`core` is pure: no clock, disk or network, neither its own nor imported.
"""
