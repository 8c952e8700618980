"""The state machine of one transactional id. Pure: no clock, disk or network.

`txn.shard` and `txn.coordinator` act; the docstring of `txn` lists the modules.
"""
