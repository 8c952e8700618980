"""Transactions: a pure automaton, and the shell that lets it live in `__transaction_state`.

    api/k22 … k66      decode, ask, answer
    coordinator        this broker's shards; what it has in common with that of groups is in `coordination`
    shard              the transactions of one partition of the state topic, as long as this broker leads it
    markers            orders markers from the leaders of a transaction's partitions, until all have written them
    exchange           questions between brokers; marking: markers for partitions that this broker leads
    verifying          the other side: a partition's leader asks the coordinator before the first batch gets in
    core/states        the table of states and events
    core/transaction   one transactional id; what each event makes of it
    core/deciding      requests to decisions
    core/records       Kafka's formats in the state topic

**State is what the log says.** A decision's record is appended first; if that is refused, nothing changes. Then it is
in force here for whoever asks next, but nothing leaves this broker before the record is committed: answers wait for the
last record of their transaction, and markers are sent when the decision to end (PrepareCommit, PrepareAbort) is
committed. A broker that loses the partition forgets the shard; whoever leads next reads the log, finds transactions
that were being ended, and sends their markers again. A marker that comes twice does no harm.

**Two flows.** Clients of the old flow add partitions themselves and keep their epoch; those of `transaction.version` 2
(KIP-890) let the partitions' leaders add them, and get a new epoch with every end, so that nothing late of one
transaction can get into the next.

`core` is pure: no clock, disk or network, neither its own nor imported.
"""
